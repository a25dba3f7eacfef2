"""The graph behind a tensor as DOT and SVG."""

import re
from xml.etree import ElementTree

import pytest

import flambeau as torch
from flambeau.utils import graph


def network():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))


def boxes_of(dot):
    """Labels by name, and edges by labels' first lines."""
    labels = dict(re.findall(r'(n\d+) \[label="([^"]*)"', dot))
    titles = {name: label.split("\\n")[0] for name, label in labels.items()}
    return labels, {(titles[a], titles[b]) for a, b in re.findall(r"(n\d+) -> (n\d+);", dot)}


def test_two_layers():
    net = network()
    loss = net(torch.ones(4, 8)).exp().sum()
    picture = graph(loss, net)
    labels, edges = boxes_of(picture.dot)
    assert edges == {
        ("0.weight", "Linear"), ("0.bias", "Linear"), ("Linear", "Relu"), ("Relu", "Linear"), ("2.weight", "Linear"),
        ("2.bias", "Linear"), ("Linear", "Exp"), ("Exp", "Sum"),
    }  # fmt: skip
    assert "Relu\\n4×16\\nsaved 256 B" in labels.values() and "0.weight\\n16×8" in labels.values()
    # input 4x8, weights 16x8 and 3x16, hidden 4x16 (once, though two operations keep it), exp 4x3
    assert picture.saved_bytes == 4 * (32 + 128 + 48 + 64 + 12)
    assert repr(picture) == "Picture(9 boxes, 1.109 KiB saved)"


def test_drawing_is_whole_and_boxes_do_not_touch():
    net = network()
    picture = graph(net(torch.ones(4, 8)).sum(), net)
    root = ElementTree.fromstring(picture.svg)
    ns = "{http://www.w3.org/2000/svg}"
    rects = [tuple(float(r.get(k)) for k in ("x", "y", "width", "height")) for r in root.iter(ns + "rect")]
    assert len(rects) == picture.boxes == 8
    for i, (x, y, w, h) in enumerate(rects):
        for u, v, s, t in rects[:i]:
            assert x + w <= u or u + s <= x or y + h <= v or v + t <= y
    left, top, width, height = map(float, root.get("viewBox").split())
    assert all(left <= x and x + w <= left + width and top <= y and y + h <= top + height for x, y, w, h in rects)
    texts = [t.text for t in root.iter(ns + "text")]
    assert "2.weight" in texts and "4×16" in texts
    assert picture._repr_svg_() == picture.svg


def test_save(tmp_path):
    picture = graph(torch.ones(2, requires_grad=True).exp())
    picture.save(tmp_path / "a.svg")
    picture.save(tmp_path / "a.dot")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == picture.svg
    assert (tmp_path / "a.dot").read_text(encoding="utf-8").startswith("digraph {")
    with pytest.raises(ValueError, match="saved as"):
        picture.save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="none of the tensors has a graph"):
        graph(torch.ones(2))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(4), torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))) * 2)


def test_many_operations_are_folded_by_module():
    net = torch.nn.Sequential(*[Block() for _ in range(15)])
    loss = net(torch.ones(2, 4)).sum()
    whole = graph(loss, net, fold=False)
    picture = graph(loss, net)
    assert whole.boxes > 150 and picture.boxes <= 40
    assert picture.saved_bytes == whole.saved_bytes
    _, edges = boxes_of(graph(loss, net, fold=1).dot)
    assert edges == {(str(i), str(i + 1)) for i in range(14)}
    ElementTree.fromstring(picture.svg)


def test_modules_are_exact_where_they_were_recorded():
    net = torch.nn.Sequential(*[Block() for _ in range(3)])
    with graph.record(net):
        y = net(torch.ones(2, 4))
    loss = y.exp().sum()
    labels, edges = boxes_of(graph(loss, fold=2).dot)
    assert {"0.up", "0.norm", "0.down", "0"} <= {label.split("\\n")[0] for label in labels.values()}
    assert ("0.norm", "0.up") in edges and ("0.up", "0") in edges and ("0", "0.down") in edges
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())


def test_chains_without_modules():
    x = torch.ones(3, requires_grad=True)
    y = x
    for _ in range(200):
        y = (y * 1.5).sin()
    picture = graph(y.sum())
    assert picture.boxes == 2 and "401 operations" in picture.dot
    ElementTree.fromstring(graph(y.sum(), fold=False).svg)


def test_functions_of_ones_own_and_hidden_tensors():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        y = x.exp()
    picture = graph(Twice.apply(y), {"x <in>": x})
    labels, edges = boxes_of(picture.dot)
    assert edges == {("x <in>", "Exp"), ("Exp", "Twice")} and "Twice\\n3\\nsaved 12 B" in labels.values()
    assert "x &lt;in&gt;" in picture.svg
