"""A graph from left to right: boxes in columns, with lines from each to what is made of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.sdk.pictures.markup import IDLE, Markup, element

BOX_WIDTH, BOX_HEIGHT = 190, 38
GAP_X, GAP_Y = 56, 12
# How much of a name there is room for, and of what stands below it in smaller letters.
LETTERS, SMALL_LETTERS = 26, 36


@dataclass(frozen=True)
class Node:
    """A box: what it is called, what stands below that, and its colour."""

    name: str
    detail: str
    colour: str = IDLE


def draw_graph(nodes: Sequence[Node], edges: Iterable[tuple[str, str]], title: str) -> Markup:
    """The graph; edges go from a name to another, and have no circles."""
    lines = sorted(set(edges))
    levels = _find_levels([node.name for node in nodes], lines)
    columns: dict[int, list[Node]] = {}
    for node in nodes:
        columns.setdefault(levels[node.name], []).append(node)
    tallest = max(map(len, columns.values()), default=0)
    height = tallest * (BOX_HEIGHT + GAP_Y)
    width = len(columns) * (BOX_WIDTH + GAP_X) - GAP_X
    places = {
        node.name: (
            level * (BOX_WIDTH + GAP_X),
            (n + 0.5) * height / len(column) - BOX_HEIGHT / 2,
        )
        for level, column in columns.items()
        for n, node in enumerate(column)
    }
    drawn = [_draw_line(places[one], places[other]) for one, other in lines]
    drawn += [_draw_box(node, *places[node.name]) for node in nodes]
    return element(
        "svg",
        element("title", title),
        *drawn,
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=title,
        style="max-width:100%",
    )


def _find_levels(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """How many boxes are before each, on the longest way."""
    levels = dict.fromkeys(names, 0)
    # As many rounds as there are boxes suffice, as there are no circles.
    for _ in names:
        for one, other in edges:
            levels[other] = max(levels[other], levels[one] + 1)
    return levels


def _draw_line(start: tuple[float, float], end: tuple[float, float]) -> Markup:
    x, y = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT / 2
    to_x, to_y = end[0], end[1] + BOX_HEIGHT / 2
    middle = (x + to_x) / 2
    path = f"M{x:.0f},{y:.0f} C{middle:.0f},{y:.0f} {middle:.0f},{to_y:.0f} {to_x:.0f},{to_y:.0f}"
    return element("path", d=path, fill="none", stroke=IDLE)


def _draw_box(node: Node, x: float, y: float) -> Markup:
    text = {"fill": "currentColor", "font_family": "sans-serif"}
    return element(
        "g",
        element("title", f"{node.name}: {node.detail}"),
        element(
            "rect",
            width=BOX_WIDTH,
            height=BOX_HEIGHT,
            rx=4,
            fill=node.colour,
            fill_opacity=0.12,
            stroke=node.colour,
        ),
        element("text", _cut(node.name, LETTERS), x=8, y=16, font_size=12, **text),
        element(
            "text", _cut(node.detail, SMALL_LETTERS), x=8, y=31, font_size=10, opacity=0.7, **text
        ),
        transform=f"translate({x:.0f},{y:.0f})",
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
