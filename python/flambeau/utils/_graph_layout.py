"""A layered drawing of a graph of boxes: what a box uses stands above it.

Source: Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system structures", 1981.
"""

from html import escape

_CHAR, _LINE, _PAD = 6.6, 15, 8
_GAP_X, _GAP_Y = 18, 34
_COLOURS = {"op": "#ffffff", "leaf": "#dcefd9", "group": "#dde7f3", "root": "#f7e3c8"}


class _Cell:
    """A box, or a place where an edge passes a layer, in the drawing."""

    def __init__(self, box=None):
        self.box, self.lines = box, box.text() if box else []
        self.width = 2 * _PAD + _CHAR * max(map(len, self.lines)) if box else 6
        self.height = 2 * _PAD + _LINE * len(self.lines) if box else 0
        self.above, self.below, self.layer, self.at = [], [], 0, 0.0


def to_svg(boxes):
    """The drawing of boxes that have ``text()``, ``kind`` and ``inputs``."""
    cells = {id(box): _Cell(box) for box in boxes}
    edges = _without_cycles(boxes, cells)
    _layers(list(cells.values()), edges)
    layers, routes = _with_passages(list(cells.values()), edges)
    for _ in range(4):
        _sort(layers, lambda c: c.above)
        _sort(reversed(layers), lambda c: c.below)
    _place(layers)
    return _drawn(layers, routes)


def _without_cycles(boxes, cells):
    """Edges from source to user; what would close a circle (folded boxes can) is turned around for the layout."""
    edges, state = [], {}
    for start in boxes:
        stack = [(start, iter(start.inputs))] if id(start) not in state else []
        state.setdefault(id(start), 1)
        while stack:
            box, rest = stack[-1]
            source = next(rest, None)
            if source is None:
                state[id(box)] = 2
                stack.pop()
                continue
            back = state.get(id(source)) == 1
            pair = (cells[id(source)], cells[id(box)])
            edges.append((pair[::-1] if back else pair, back))
            if id(source) not in state:
                state[id(source)] = 1
                stack.append((source, iter(source.inputs)))
    return edges


def _layers(cells, edges):
    """A cell is one below the lowest of those that it uses; one that uses nothing stands just above its first user."""
    users, waits = {}, {id(c): 0 for c in cells}
    for (source, user), _ in edges:
        users.setdefault(id(source), []).append(user)
        waits[id(user)] += 1
    ready = [c for c in cells if waits[id(c)] == 0]
    sources = list(ready)
    while ready:
        cell = ready.pop()
        for user in users.get(id(cell), ()):
            user.layer = max(user.layer, cell.layer + 1)
            waits[id(user)] -= 1
            if waits[id(user)] == 0:
                ready.append(user)
    for cell in sources:
        if id(cell) in users:
            cell.layer = min(user.layer for user in users[id(cell)]) - 1


def _with_passages(cells, edges):
    """The layers, with a place in each layer that an edge passes; and each edge as the cells along it."""
    layers = [[] for _ in range(1 + max(c.layer for c in cells))]
    for cell in cells:
        layers[cell.layer].append(cell)
    routes = []
    for (source, user), back in edges:
        route = [source]
        for layer in range(source.layer + 1, user.layer):
            passage = _Cell()
            passage.layer = layer
            layers[layer].append(passage)
            route.append(passage)
        route.append(user)
        for upper, lower in zip(route, route[1:]):
            upper.below.append(lower)
            lower.above.append(upper)
        routes.append((route, back))
    return layers, routes


def _sort(layers, neighbours):
    """Cells by the mean place of their neighbours in the layer before."""
    for layer in layers:
        place = {id(c): i for i, c in enumerate(layer)}
        for cell in layer:
            near = neighbours(cell)
            cell.at = sum(c.at for c in near) / len(near) if near else place[id(cell)]
        layer.sort(key=lambda c: c.at)
        for i, cell in enumerate(layer):
            cell.at = i - len(layer) / 2


def _place(layers):
    """Coordinates: layers below each other, each centred under what it uses as far as there is room."""
    y = _PAD
    for layer in layers:
        total = sum(c.width + _GAP_X for c in layer)
        x = -total / 2
        for cell in layer:
            cell.x = x + cell.width / 2
            x += cell.width + _GAP_X
        for _ in range(8):
            for cell in layer:
                if cell.above:
                    cell.x = sum(c.x for c in cell.above) / len(cell.above)
            _spread(layer)
        height = max(c.height for c in layer)
        for cell in layer:
            cell.y = y + height / 2
            cell.height = cell.height or height  # an edge passes boxes straight
        y += height + _GAP_Y


def _spread(layer):
    """Moves cells apart, in their order, about where they want to be."""
    for left, right in zip(layer, layer[1:]):
        right.x = max(right.x, left.x + (left.width + right.width) / 2 + _GAP_X)
    # What was pushed right is taken back by half of the push of the last cell, so that layers stay centred.
    wanted = [sum(c.x for c in cell.above) / len(cell.above) for cell in layer if cell.above]
    if wanted:
        shift = sum(wanted) / len(wanted) - sum(c.x for c in layer if c.above) / len(wanted)
        for cell in layer:
            cell.x += shift


def _drawn(layers, routes):
    cells = [c for layer in layers for c in layer]
    left = min(c.x - c.width / 2 for c in cells) - _PAD
    right = max(c.x + c.width / 2 for c in cells) + _PAD
    bottom = max(c.y + c.height / 2 for c in cells) + _PAD
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right - left:.0f}" height="{bottom:.0f}" '
        f'viewBox="{left:.1f} 0 {right - left:.1f} {bottom:.1f}" font-family="sans-serif" font-size="11">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>',
    ]
    for route, back in routes:
        parts.append(_curve(route, back))
    for cell in cells:
        if cell.box:
            parts.append(_drawn_box(cell))
    return "\n".join([*parts, "</svg>", ""])


def _curve(route, back):
    start, *rest = route
    x, y = start.x, start.y + start.height / 2
    text = f"M{x:.1f} {y:.1f}"
    for cell in rest:
        to_x, to_y = cell.x, cell.y - cell.height / 2
        middle = (y + to_y) / 2
        text += f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, cell.y + cell.height / 2
        if cell.box is None:
            text += f"L{x:.1f} {y:.1f}"
    marker = 'marker-start="url(#tip)"' if back else 'marker-end="url(#tip)"'
    return f'<path d="{text}" fill="none" stroke="#667" {marker}/>'


def _drawn_box(cell):
    x, y = cell.x - cell.width / 2, cell.y - cell.height / 2
    radius = 2 if cell.box.kind == "leaf" else 6
    parts = [
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{cell.width:.1f}" height="{cell.height:.1f}" rx="{radius}" '
        f'fill="{_COLOURS[cell.box.kind]}" stroke="#667"/>'
    ]
    for i, line in enumerate(cell.lines):
        weight = ' font-weight="bold"' if i == 0 else ""
        at = y + _PAD + _LINE * (i + 0.75)
        parts.append(f'<text x="{cell.x:.1f}" y="{at:.1f}" text-anchor="middle"{weight}>{escape(line)}</text>')
    return "".join(parts)
