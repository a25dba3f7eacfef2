"""The graph behind a tensor as a picture: operations, shapes, parameters, and what is kept for backward.

>>> import flambeau as torch
>>> from flambeau.utils import graph
>>> layer = torch.nn.Linear(2, 3)
>>> picture = graph(layer(torch.ones(1, 2)).sum(), layer)
>>> "weight" in picture.dot and picture.svg.startswith("<svg")
True

``graph`` is this module and its function at once.
"""

import sys
from contextlib import contextmanager
from types import ModuleType

from .. import _C
from .._tensor import Tensor
from ._graph_layout import to_svg

__all__ = ["Picture", "graph", "record"]

#: Operations from which a graph is folded.
_MANY = 60
_MODULE = "flambeau.module"


class _Box:
    """A step, a leaf or several steps as one."""

    def __init__(self, kind, title, lines=()):
        self.kind, self.title, self.lines = kind, title, list(lines)
        self.saved, self.inputs = {}, []

    def text(self):
        """What stands in the box."""
        size = sum(self.saved.values())
        return [self.title, *self.lines, *([f"saved {_bytes(size)}"] if size else [])]


class Picture:
    """A drawn graph: ``dot`` and ``svg`` are its texts, notebooks show it, :meth:`save` writes it.

    ``boxes`` is how many there are, ``saved_bytes`` the memory that the graph keeps for backward, each piece counted once.
    """

    def __init__(self, boxes, saved_bytes):
        self._boxes = boxes
        self.boxes, self.saved_bytes = len(boxes), saved_bytes

    @property
    def dot(self):
        """The text for Graphviz."""
        look = {
            "op": 'shape=box, style=rounded', "leaf": 'shape=box, style=filled, fillcolor="#dcefd9"',
            "group": 'shape=box, style="rounded,filled", fillcolor="#dde7f3"', "root": "shape=box, peripheries=2",
        }  # fmt: skip
        lines = ["digraph {", '  node [fontname="sans-serif", fontsize=11];']
        numbers = {id(box): number for number, box in enumerate(self._boxes)}
        for box in self._boxes:
            label = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in box.text())
            lines.append(f'  n{numbers[id(box)]} [label="{label}", {look[box.kind]}];')
        for box in self._boxes:
            lines.extend(f"  n{numbers[id(source)]} -> n{numbers[id(box)]};" for source in box.inputs)
        return "\n".join([*lines, "}", ""])

    @property
    def svg(self):
        """The picture as SVG, inputs above."""
        return to_svg(self._boxes)

    def _repr_svg_(self):
        return self.svg

    def save(self, path):
        """Write ``path``, as DOT or SVG after its ending."""
        text = str(path)
        if not text.endswith((".dot", ".gv", ".svg")):
            raise ValueError(f"graph: a picture is saved as .svg, .dot or .gv, got {text}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg if text.endswith(".svg") else self.dot)

    def __repr__(self):
        return f"Picture({self.boxes} boxes, {_bytes(self.saved_bytes)} saved)"


@contextmanager
def record(model):
    """A block in which each operation notes the innermost module of ``model`` in whose ``forward`` it is recorded.

    :func:`graph` then folds by these names; without, an operation counts to the module whose parameters it uses, or
    whose result.
    """
    handles, open_ = [], []

    def now():
        probe = _C.empty(0, requires_grad=True)
        from .._grad_mode import enable_grad

        with enable_grad():
            return probe.view_as(probe).grad_fn._sequence_nr()

    def enter(name):
        def hook(module, args):
            open_.append(now())

        return hook

    def leave(name):
        def hook(module, args, output):
            first, last = open_.pop(), now()
            for node in _walk([t.grad_fn for t in _tensors(output) if t.grad_fn is not None], lambda n: n._sequence_nr() > first):
                if first < node._sequence_nr() < last:
                    node.metadata.setdefault(_MODULE, name)

        return hook

    try:
        for name, module in model.named_modules():
            if name:
                handles.append(module.register_forward_pre_hook(enter(name)))
                handles.append(module.register_forward_hook(leave(name)))
        yield
    finally:
        for handle in handles:
            handle.remove()


def graph(outputs, model=None, *, fold=None):
    """The graph behind a tensor, or several, as a :class:`Picture`.

    ``model`` (a module, or a dictionary from names to tensors) gives names to leaves. A graph of more than 60 operations
    is folded: by the modules of ``model``, so deep that there are at most 40 of them, else by chains in which each
    operation has one input and one use. ``fold`` chooses: False for none, True, or the depth of modules' names to fold at.
    """
    roots = [t for t in _tensors(outputs) if t.grad_fn is not None]
    if not roots:
        raise ValueError("graph: none of the tensors has a graph: they were computed without gradients")
    names = _names(model)
    nodes = list(_walk([t.grad_fn for t in roots]))
    steps = [n for n in nodes if _leaf(n) is None]
    boxes = {}
    for node in nodes:
        boxes[id(node)] = _box(node, names)
    for node in nodes:
        boxes[id(node)].inputs = [boxes[id(n)] for n, _ in node.next_functions if n is not None]
    saved = {}
    for box in boxes.values():
        saved.update(box.saved)
    if fold is None:
        fold = len(steps) > _MANY
    made = list(boxes.values())
    if fold is not False:
        modules = _modules(nodes, names) if names or any(_MODULE in n.metadata for n in steps) else {}
        if any(modules.values()):
            depth = None if fold is True else fold
            made = _folded(nodes, boxes, _at_depth(modules, depth))
        else:
            made = _chained(made)
    for box in made[:]:
        if not any(box in other.inputs for other in made) and box.kind == "op":
            box.kind = "root"
    return Picture(made, sum(saved.values()))


def _tensors(value):
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return [t for v in value for t in _tensors(v)] if hasattr(value, "__iter__") and not isinstance(value, str) else []


def _names(model):
    if model is None:
        return {}
    pairs = model.items() if isinstance(model, dict) else model.named_parameters()
    return {id(tensor): name for name, tensor in pairs}


def _leaf(node):
    return getattr(node, "variable", None)


def _walk(roots, further=lambda node: True):
    """All nodes from some on, each after those that use it were met."""
    seen, stack = {}, list(roots)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        stack.extend(n for n, _ in node.next_functions if n is not None and further(n))
    return sorted(seen.values(), key=lambda n: -n._sequence_nr())


def _bytes(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.4g} {unit}"
        count /= 1024


def _shape(shape):
    return "×".join(map(str, shape)) if shape else "scalar"


def _box(node, names):
    leaf = _leaf(node)
    if leaf is not None:
        return _Box("leaf", names.get(id(leaf), "leaf"), [_shape(leaf.shape)])
    name = node.name()
    title = name[: name.rindex("Backward")] if "Backward" in name else name
    box = _Box("op", title, [", ".join(map(_shape, node._output_shapes()))])
    box.saved = dict(node._saved_memory())
    return box


def _modules(nodes, names):
    """The module that each node belongs to, by the node's id; the empty name where that is not known."""
    found = {}
    for node in nodes:
        leaf = _leaf(node)
        if leaf is not None:
            found[id(node)] = names.get(id(leaf), "").rpartition(".")[0]
    for node in sorted((n for n in nodes if _leaf(n) is None), key=lambda n: n._sequence_nr()):
        noted = node.metadata.get(_MODULE)
        given = [(n, found.get(id(n), "")) for n, _ in node.next_functions if n is not None]
        own = [name for n, name in given if name and _leaf(n) is not None]
        # Of several results that it uses, the one computed last: so a sum with what went around a module stays with the module.
        other = max(((n._sequence_nr(), name) for n, name in given if name and _leaf(n) is None), default=(0, ""))[1]
        found[id(node)] = noted or next(iter(own), other)
    return found


def _at_depth(modules, depth):
    """Names cut to a depth: that given, or the deepest that leaves at most 40."""

    def cut(name, depth):
        return ".".join(name.split(".")[:depth])

    if depth is None:
        deepest = max(name.count(".") + 1 for name in modules.values())
        depth = next((d for d in range(deepest, 1, -1) if len({cut(n, d) for n in modules.values()}) <= 40), 1)
    return {key: cut(name, depth) for key, name in modules.items()}


def _merged(boxes, group_of, title_of):
    """One box for the boxes of each group; edges within a group go, those between groups stay, once each."""
    groups, order = {}, []
    for box in boxes:
        key = group_of(box)
        if key not in groups:
            groups[key] = []
            order.append(key)
        groups[key].append(box)
    made = {key: title_of(key, members) for key, members in groups.items()}
    sources = {key: [group_of(i) for member in groups[key] for i in member.inputs] for key in order}
    for key in order:
        box = made[key]
        for member in groups[key]:
            box.saved.update(member.saved)
        box.inputs = [made[s] for s in dict.fromkeys(sources[key]) if s != key]
    return [made[key] for key in order]


def _folded(nodes, boxes, modules):
    """A box for each module; parameters are inside it."""
    group = {id(boxes[id(n)]): modules[id(n)] or id(n) for n in nodes}

    def title(name, members):
        steps = [m for m in members if m.kind == "op"]
        if not isinstance(name, str) or not steps:
            return members[0]
        what = steps[0].title if len(steps) == 1 else f"{len(steps)} operations"
        return _Box("group", name, [what, *steps[0].lines])

    return _merged(list(boxes.values()), lambda box: group[id(box)], title)


def _chained(boxes):
    """A box for each chain of operations in which each has one input that is no leaf, and one use."""
    uses = {}
    for box in boxes:
        for source in box.inputs:
            uses[id(source)] = uses.get(id(source), 0) + 1
    chain = {}
    for box in reversed(boxes):  # inputs come first
        steps = [s for s in box.inputs if s.kind != "leaf"]
        if box.kind == "op" and len(steps) == 1 and steps[0].kind == "op" and uses[id(steps[0])] == 1:
            chain[id(box)] = chain.get(id(steps[0]), id(steps[0]))

    def title(key, members):
        if len(members) == 1:
            return members[0]
        names = [m.title for m in reversed(members)]
        text = " → ".join(names if len(names) <= 4 else [*names[:2], "…", names[-1]])
        return _Box("group", text, [f"{len(names)} operations", *members[0].lines])

    return _merged(boxes, lambda box: chain.get(id(box), id(box)), title)


class _Callable(ModuleType):
    """The module, which can be called."""

    def __call__(self, outputs, model=None, *, fold=None):
        return graph(outputs, model, fold=fold)


sys.modules[__name__].__class__ = _Callable
