"""Containers in containers, taken apart and put together again."""

from collections import OrderedDict, defaultdict, deque, namedtuple

__all__ = [
    "LeafSpec", "TreeSpec", "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_iter", "tree_leaves",
    "tree_map", "tree_map_", "tree_map_only", "tree_structure", "tree_unflatten",
]  # fmt: skip

_Node = namedtuple("_Node", "flatten unflatten")
SUPPORTED_NODES = {
    list: _Node(lambda x: (x, None), lambda xs, _: list(xs)),
    tuple: _Node(lambda x: (list(x), None), lambda xs, _: tuple(xs)),
    dict: _Node(lambda x: (list(x.values()), list(x)), lambda xs, keys: dict(zip(keys, xs))),
    OrderedDict: _Node(lambda x: (list(x.values()), list(x)), lambda xs, keys: OrderedDict(zip(keys, xs))),
    defaultdict: _Node(
        lambda x: (list(x.values()), (x.default_factory, list(x))),
        lambda xs, context: defaultdict(context[0], zip(context[1], xs)),
    ),
    deque: _Node(lambda x: (list(x), x.maxlen), lambda xs, maxlen: deque(xs, maxlen=maxlen)),
}
# Named tuples, and the named results of operations, which are made of one iterable.
_NAMED = _Node(lambda x: (list(x), type(x)), lambda xs, cls: getattr(cls, "_make", cls)(xs))


def register_pytree_node(cls, flatten_fn, unflatten_fn, **_):
    """Teach the functions here a container: ``flatten_fn`` gives its elements and a context, ``unflatten_fn`` reverses it."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = _Node(flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


def _node(tree):
    found = SUPPORTED_NODES.get(type(tree))
    return _NAMED if found is None and isinstance(tree, tuple) and hasattr(tree, "_fields") else found


class TreeSpec:
    """The containers without their leaves."""

    def __init__(self, type, context, children_specs):
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_leaves = sum(child.num_leaves for child in children_specs) if type is not None else 1

    def is_leaf(self):
        """Whether this is where a leaf was."""
        return self.type is None

    @property
    def num_children(self):
        """How many elements the container has."""
        return len(self.children_specs)

    def unflatten(self, leaves):
        """The containers with these leaves."""
        return tree_unflatten(leaves, self)

    def __eq__(self, other):
        return isinstance(other, TreeSpec) and (self.type, self.context, self.children_specs) == (
            other.type, other.context, other.children_specs,
        )  # fmt: skip

    def __hash__(self):
        return hash((self.type, self.num_leaves))

    def __repr__(self):
        if self.is_leaf():
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


def LeafSpec():
    """Where a leaf was."""
    return TreeSpec(None, None, [])


def tree_flatten(tree, is_leaf=None):
    """The leaves as a list, and the containers."""
    leaves = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree, leaves, is_leaf):
    node = _node(tree)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LeafSpec()
    children, context = node.flatten(tree)
    return TreeSpec(type(tree), context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves, treespec):
    """The containers with these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
            f"holds {treespec.num_leaves} items"
        )
    return _unflatten(iter(leaves), treespec)


def _unflatten(leaves, spec):
    if spec.is_leaf():
        return next(leaves)
    node = SUPPORTED_NODES.get(spec.type, _NAMED)
    return node.unflatten([_unflatten(leaves, child) for child in spec.children_specs], spec.context)


def tree_leaves(tree, is_leaf=None):
    """The leaves as a list."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree, is_leaf=None):
    """The leaves, one by one."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    """The containers."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The same containers, of what ``func`` makes of each leaf (and of those in the same place of ``rests``)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    return tree_unflatten([func(*xs) for xs in zip(leaves, *others)], spec)


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call ``func`` on each leaf; the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(type_or_types, func, tree=None, is_leaf=None):
    """``tree_map`` of the leaves of some types; the others stay."""
    wanted = type_or_types if isinstance(type_or_types, (type, tuple)) else None
    matches = (lambda x: isinstance(x, wanted)) if wanted else type_or_types
    return tree_map(lambda x: func(x) if matches(x) else x, tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether ``pred`` holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether ``pred`` holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))
