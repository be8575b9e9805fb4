"""A drawing that is part of a page, which colours it by its style sheet and shows tips and local times."""

from html import escape

from penstock.engine.diagrams.svg import Drawing, PixelPosition, format_number

HIT_HEIGHT = 12.0
"""How high the part of a bar is that a mouse finds."""


class EmbeddedDrawing(Drawing):
    """A drawing without style and background. A `Content-Security-Policy` without inline styles allows it."""

    def add_pane(
        self, corner: PixelPosition, size: PixelPosition, kind: str, tooltip: str, link: str = ""
    ) -> None:
        """Draw the bar of a pane as a link, with a tip, and higher where a mouse looks for it."""
        (x, y), (width, height) = corner, size
        self.shapes.append(
            f'<a href="{escape(link)}" data-tip="{escape(tooltip)}" aria-label="{escape(tooltip)}">'
        )
        hit_y = y + height / 2 - HIT_HEIGHT / 2
        self.add_rectangle((x, hit_y), (width, HIT_HEIGHT), "hit")
        self.add_rectangle(corner, size, kind)
        self.shapes.append("</a>")

    def add_column(self, corner: PixelPosition, size: PixelPosition, tooltip: str, time_ms: float) -> None:
        """Draw an unseen rectangle that shows a tip about a time."""
        (x, y), (width, height) = corner, size
        position = f'x="{format_number(x)}" y="{format_number(y)}"'
        geometry = f'{position} width="{format_number(width)}" height="{format_number(height)}"'
        self.shapes.append(
            f'<rect class="hit" {geometry} data-tip="{escape(tooltip)}" data-at="{time_ms:.0f}"/>'
        )

    def add_time(self, position: PixelPosition, text: str, kind: str, time_ms: float) -> None:
        """Draw a time that a script can show in another zone."""
        x, y = format_number(position[0]), format_number(position[1])
        form = "minute" if text.count(":") == 1 else "clock"
        data = f'data-time="{time_ms:.0f}" data-form="{form}"'
        self.shapes.append(f'<text class="{kind}" x="{x}" y="{y}" {data}>{escape(text)}</text>')

    def to_svg(self) -> str:
        """Return the SVG element."""
        head = f'<svg class="diagram" viewBox="0 0 {self.width} {self.height}" role="group"'
        return "\n".join([f'{head} aria-label="{escape(self.description)}">', *self.shapes, "</svg>"])
