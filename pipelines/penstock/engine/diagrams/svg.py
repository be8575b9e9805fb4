"""SVG shapes. The same input gives the same text, byte for byte."""

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

PixelPosition = tuple[float, float]


def format_number(value: float) -> str:
    """Format a length to a tenth of a pixel, without a trailing zero."""
    return f"{value:.1f}".removesuffix(".0")


@dataclass
class Drawing:
    """A drawing on a white background. Later shapes are above earlier ones."""

    width: int
    height: int
    description: str
    shapes: list[str] = field(default_factory=list)

    def add_line(self, start: PixelPosition, end: PixelPosition, kind: str) -> None:
        """Draw a straight line."""
        (x1, y1), (x2, y2) = ((format_number(x), format_number(y)) for x, y in (start, end))
        self.shapes.append(f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')

    def add_path(self, points: Iterable[PixelPosition], kind: str, colour: str = "") -> None:
        """Draw a line through points."""
        point_list = " ".join(f"{format_number(x)},{format_number(y)}" for x, y in points)
        style = f' style="stroke: {colour}; fill: none; stroke-width: 1.8"' if colour else ""
        self.shapes.append(f'<polyline class="{kind}" points="{point_list}"{style}/>')

    def add_rectangle(
        self, corner: PixelPosition, size: PixelPosition, kind: str, opacity: float = 1.0, tooltip: str = ""
    ) -> None:
        """Draw a filled rectangle from its upper left corner, with an optional tooltip."""
        (x, y), (width, height) = corner, size
        position = f'x="{format_number(x)}" y="{format_number(y)}"'
        geometry = f'{position} width="{format_number(width)}" height="{format_number(height)}"'
        opacity_attribute = "" if opacity == 1 else f' fill-opacity="{opacity:g}"'
        closing_tag = f"><title>{escape(tooltip)}</title></rect>" if tooltip else "/>"
        self.shapes.append(f'<rect class="{kind}" {geometry}{opacity_attribute}{closing_tag}')

    def add_dot(self, centre: PixelPosition, radius: float, kind: str, colour: str = "") -> None:
        """Draw a dot."""
        style = f' style="fill: {colour}"' if colour else ""
        geometry = f'cx="{format_number(centre[0])}" cy="{format_number(centre[1])}"'
        self.shapes.append(f'<circle class="{kind}" {geometry} r="{format_number(radius)}"{style}/>')

    def add_pane(
        self, corner: PixelPosition, size: PixelPosition, kind: str, tooltip: str, link: str = ""
    ) -> None:
        """Draw the bar of a pane. A link is for drawings that are part of a page."""
        self.add_rectangle(corner, size, kind, tooltip=tooltip)

    def add_time(self, position: PixelPosition, text: str, kind: str, time_ms: float) -> None:
        """Draw a time. A drawing that is part of a page also tells the page which time it is."""
        self.add_text(position, text, kind)

    def add_cross(self, centre: PixelPosition, arm: float, kind: str) -> None:
        """Draw a cross."""
        x, y = centre
        self.add_line((x - arm, y - arm), (x + arm, y + arm), kind)
        self.add_line((x - arm, y + arm), (x + arm, y - arm), kind)

    def add_text(self, position: PixelPosition, text: str, kind: str = "") -> None:
        """Draw a line of text."""
        class_attribute = f' class="{kind}"' if kind else ""
        geometry = f'x="{format_number(position[0])}" y="{format_number(position[1])}"'
        self.shapes.append(f"<text{class_attribute} {geometry}>{escape(text)}</text>")

    def add_vertical_text(self, position: PixelPosition, text: str) -> None:
        """Draw a vertical line of text, centred at a position."""
        x, y = format_number(position[0]), format_number(position[1])
        self.shapes.append(
            f'<text class="middle" transform="rotate(-90 {x} {y})" x="{x}" y="{y}">{escape(text)}</text>'
        )

    def to_svg(self) -> str:
        """Return the SVG text."""
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(self.description)}">'
        ground = f'<rect width="{self.width}" height="{self.height}" fill="white"/>'
        return "\n".join([head, f"<style>{STYLE}</style>", ground, *self.shapes, "</svg>", ""])
