"""Bars of several parts with a legend, badges, and lines of numbers."""

from collections.abc import Sequence

from penstock.sdk.pictures.markup import Markup, element, join, quiet

WIDTH, HEIGHT = 360, 14
# Even a small part can be seen.
MIN_WIDTH = 2.0
LINE_WIDTH, LINE_HEIGHT = 90, 18

# What a part is called, how much it is, and its colour.
Part = tuple[str, int, str]


def bar(parts: Sequence[Part], title: str) -> Markup | None:
    """A bar, and what its parts are; None when there is nothing in it."""
    shown = [part for part in parts if part[1]]
    total = sum(count for _, count, _ in shown)
    if not total:
        return None
    widths = [max(MIN_WIDTH, WIDTH * count / total) for _, count, _ in shown]
    scale = WIDTH / sum(widths)
    rects, at = [], 0.0
    for (name, count, colour), width in zip(shown, widths, strict=True):
        tip = element("title", f"{count:,} {name}")
        size = width * scale
        rects.append(
            element("rect", tip, x=f"{at:.1f}", width=f"{size:.1f}", height=HEIGHT, fill=colour)
        )
        at += size
    picture = _svg(WIDTH, HEIGHT, title, *rects)
    legend = [
        join([element("span", "■ ", style=f"color:{colour}"), f"{count:,} {name}  "])
        for name, count, colour in shown
    ]
    return element("div", picture, element("div", *legend), style="margin:4px 0")


def badge(text: str, colour: str) -> Markup:
    style = f"background:{colour};color:white;border-radius:3px;padding:1px 6px"
    return element("span", text, style=style)


def line(numbers: Sequence[float], length: int) -> Markup:
    """A vector as a line, with how long it is."""
    least, most = min(numbers), max(numbers)
    span = (most - least) or 1.0
    step = LINE_WIDTH / max(1, len(numbers) - 1)
    points = " ".join(
        f"{n * step:.1f},{LINE_HEIGHT - 1 - (each - least) / span * (LINE_HEIGHT - 2):.1f}"
        for n, each in enumerate(numbers)
    )
    drawn = element("polyline", points=points, fill="none", stroke="currentColor")
    name = f"{length:,} numbers from {least:g} to {most:g}"
    return join([_svg(LINE_WIDTH, LINE_HEIGHT, name, drawn), quiet(f" {length:,}")])


def _svg(width: int, height: int, title: str, *inside: Markup) -> Markup:
    return element(
        "svg",
        element("title", title),
        *inside,
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=title,
    )
