"""`penstock top`: the streams, live, in the order of a figure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.live_view import steer_view
from penstock.platform.cli.output import format_examples
from penstock.platform.cli.stream_figures import (
    LEGEND,
    STREAM_COLUMNS,
    StreamFigures,
    format_delay,
    format_rate,
)
from penstock.platform.cli.text_table import render_table, shorten, wrap_text
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from penstock.platform.stack.stack_view import StackView

SECTION: Section = "Local stack"

Order = Literal["lag", "rate", "delay", "p99", "late", "invalid", "name"]
ORDERS: Sequence[Order] = get_args(Order)
QUIT_KEYS = ("q", "Q", "\x1b")
NEXT_ORDER_KEY = "s"

_FIGURES: Mapping[Order, Callable[[StreamFigures], float | None]] = {
    "lag": lambda each: None if each.stream.last is None else each.stream.lag_records,
    "rate": lambda each: each.rates.records_per_second if each.rates else None,
    "delay": lambda each: each.watermark_delay_ms,
    "p99": lambda each: each.rates.batch_ms_p99 if each.rates else None,
    "late": lambda each: each.rates.late_share if each.rates else None,
    "invalid": lambda each: each.rates.invalid_share if each.rates else None,
}


@click.command(
    name="top",
    short_help="Show streams live, by lag, rate or delay",
    epilog=format_examples("penstock top", "penstock top --sort rate", "penstock top --sort delay | head"),
)
@click.option(
    "--sort",
    "order",
    type=click.Choice(ORDERS),
    default="lag",
    show_default=True,
    help="The figure to sort by, the greatest first; or the name.",
)
def command(order: Order) -> None:
    """Show the streams with their rates, lag, watermark delay, batch times, and late and invalid shares.

    The figures are those of `penstock status`. In a terminal the view is refreshed: `s` sorts by the next figure,
    and `q` ends it. Other outputs get it once.
    """
    top = TopView(current_settings(), order)
    steer_view(top.render, top.handle_key)


@dataclass
class TopView:
    """The view, and the order that a key changes."""

    settings: Settings
    order: Order

    def handle_key(self, key: str) -> bool:
        """Change the order, or end the view."""
        if key == NEXT_ORDER_KEY:
            self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        return key not in QUIT_KEYS

    def render(self, width: int | None) -> list[str]:
        """Return the lines of the streams as of now."""
        from penstock.core.clock import now_ms
        from penstock.platform.stack.stack_view import read_stack_view

        return render_top(read_stack_view(self.settings, now_ms), self.order, width)


def render_top(view: "StackView", order: Order, width: int | None) -> list[str]:
    """Return the lines of a view: sums, the streams in their order, and what the keys do."""
    if not view.streams:
        return ["no stream has been started"]
    figures = sort_figures([StreamFigures.of_view(view, stream) for stream in view.streams], order)
    keys = "" if width is None else "; s: next figure, q: quit"
    heading = [_sum_figures(figures), f"sorted by {order}{keys}"]
    rows = [each.as_row() for each in figures]
    legend = [click.style(line, dim=True) for line in wrap_text(LEGEND, width)]
    return [
        *(shorten(line, width) for line in heading),
        "",
        *render_table(STREAM_COLUMNS, rows, width),
        *legend,
    ]


def sort_figures(figures: Sequence[StreamFigures], order: Order) -> list[StreamFigures]:
    """Return streams by a figure, the greatest first; those without it are last, and equal ones by name."""
    if order == "name":
        return sorted(figures, key=lambda each: each.stream.stream)

    def sort_key(each: StreamFigures) -> tuple[bool, float, str]:
        figure = _FIGURES[order](each)
        return figure is None, -(figure or 0), each.stream.stream

    return sorted(figures, key=sort_key)


def _sum_figures(figures: Sequence[StreamFigures]) -> str:
    running = sum(each.state == "running" for each in figures)
    rate = sum(each.rates.records_per_second for each in figures if each.rates)
    lag = sum(each.stream.lag_records for each in figures)
    delays = [each.watermark_delay_ms for each in figures if each.state == "running"]
    longest = max((delay for delay in delays if delay is not None), default=None)
    return (
        f"{running} of {len(figures)} streams running, {format_rate(rate)} records/s, lag {lag:,}, "
        f"longest delay {format_delay(longest)}"
    )
