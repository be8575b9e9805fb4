"""The few shapes that a picture is made of, written as SVG: the same input gives the same text, byte for byte."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

STYLE = """\
text { font: 11px system-ui, sans-serif; fill: #333 }
.title { font-size: 14px; font-weight: 600 }
.right { text-anchor: end }
.middle { text-anchor: middle }
.axis { stroke: #888; stroke-width: 1 }
.grid { stroke: #e6e6e6; stroke-width: 1 }
.ideal { stroke: #aaa; stroke-dasharray: 4 4 }
.watermark { stroke: #1f6fb2; stroke-width: 1.5; fill: none }
.record { fill: #777; fill-opacity: .55 }
.dropped { stroke: #b00020; stroke-width: 1.4 }
.early { fill: #e8a317 } .on_time { fill: #2e8b57 } .late { fill: #c0392b }
.label { font-size: 9px; paint-order: stroke; stroke: white; stroke-opacity: .8; stroke-width: 2.5 }"""

Point = tuple[float, float]


def number(value: float) -> str:
    """A length with a tenth of a pixel, without a zero that says nothing."""
    return f"{value:.1f}".removesuffix(".0")


@dataclass
class Drawing:
    """Shapes on a white ground; what is added later lies above."""

    width: int
    height: int
    about: str
    shapes: list[str] = field(default_factory=list)

    def line(self, begin: Point, end: Point, kind: str) -> None:
        """Draw a straight line."""
        (x1, y1), (x2, y2) = ((number(x), number(y)) for x, y in (begin, end))
        self.shapes.append(f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')

    def path(self, points: Iterable[Point], kind: str, colour: str = "") -> None:
        """Draw a line through points."""
        steps = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        style = f' style="stroke: {colour}; fill: none; stroke-width: 1.8"' if colour else ""
        self.shapes.append(f'<polyline class="{kind}" points="{steps}"{style}/>')

    def rectangle(self, corner: Point, size: Point, kind: str, opacity: float = 1.0, said: str = "") -> None:
        """Draw a filled rectangle from its upper left corner; `said` shows where a mouse rests on it."""
        (x, y), (width, height) = corner, size
        where = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        faint = "" if opacity == 1 else f' fill-opacity="{opacity:g}"'
        end = f"><title>{escape(said)}</title></rect>" if said else "/>"
        self.shapes.append(f'<rect class="{kind}" {where}{faint}{end}')

    def dot(self, centre: Point, radius: float, kind: str, colour: str = "") -> None:
        """Draw a dot."""
        style = f' style="fill: {colour}"' if colour else ""
        where = f'cx="{number(centre[0])}" cy="{number(centre[1])}"'
        self.shapes.append(f'<circle class="{kind}" {where} r="{number(radius)}"{style}/>')

    def cross(self, centre: Point, arm: float, kind: str) -> None:
        """Draw a cross."""
        x, y = centre
        self.line((x - arm, y - arm), (x + arm, y + arm), kind)
        self.line((x - arm, y + arm), (x + arm, y - arm), kind)

    def words(self, at: Point, text: str, kind: str = "") -> None:
        """Write a line of text."""
        named = f' class="{kind}"' if kind else ""
        where = f'x="{number(at[0])}" y="{number(at[1])}"'
        self.shapes.append(f"<text{named} {where}>{escape(text)}</text>")

    def upright(self, at: Point, text: str) -> None:
        """Write a line of text from below to above, its middle at a place."""
        x, y = number(at[0]), number(at[1])
        self.shapes.append(
            f'<text class="middle" transform="rotate(-90 {x} {y})" x="{x}" y="{y}">{escape(text)}</text>'
        )

    def svg(self) -> str:
        """Return the picture as a file's text."""
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(self.about)}">'
        ground = f'<rect width="{self.width}" height="{self.height}" fill="white"/>'
        return "\n".join([head, f"<style>{STYLE}</style>", ground, *self.shapes, "</svg>", ""])
