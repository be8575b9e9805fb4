"""The overview: what is wrong, the graph of what runs, and the streams with their figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from starlette.requests import Request

from penstock.platform.console.console_context import ConsoleContext
from penstock.platform.console.graph_layout import GraphLayout, lay_out_graph
from penstock.platform.console.live_page import LivePage, ViewModel
from penstock.platform.console.stack_graph import MAX_STREAMS, build_stack_graph
from penstock.platform.console.stack_reader import StackReading
from penstock.platform.console.stream_table import (
    STATE_FILTERS,
    StateFilter,
    StreamRow,
    StreamTable,
    build_stream_rows,
    search_streams,
)
from penstock.platform.control.recent_flows import read_recent_flows
from penstock.platform.stack.stack_view import find_rates_start

FILTER_LABELS: dict[StateFilter, str] = {
    "started": "Started",
    "attention": "Needs attention",
    "running": "Running",
    "stopped": "Stopped",
    "unstarted": "Never started",
}


@dataclass(frozen=True)
class Problem:
    """Something that is wrong: what, why, and where to read more."""

    subject: str
    state: str
    reason: str
    url: str = ""


@dataclass(frozen=True)
class StackTotals:
    """The sums of all streams."""

    running: int
    started: int
    records_per_second: float
    lag_records: int
    longest_delay_ms: int | None
    late_share: float | None
    invalid_share: float | None


def read_overview_page(request: Request, context: ConsoleContext) -> ViewModel:
    """Read the model of the page for the search of a request."""
    reading = context.stack.read()
    rows = build_stream_rows(reading)
    requested = request.query_params.get("state", "")
    state_filter = cast("StateFilter", requested) if requested in STATE_FILTERS else "started"
    table = search_streams(rows, request.query_params.get("q", ""), state_filter)
    return {
        "problems": list_problems(reading, rows),
        "totals": sum_streams(reading, rows),
        "table": table,
        "filters": FILTER_LABELS,
        "graph": _lay_out_shown(context, reading, table),
        "max_graph_streams": MAX_STREAMS,
        "programs": reading.view.programs,
        "hosts": reading.view.hosts,
    }


def list_problems(reading: StackReading, rows: Sequence[StreamRow]) -> list[Problem]:
    """Return what is wrong: programs first, since streams depend on them."""
    programs = [
        Problem(program.name, program.state if program.state != "running" else "starting", program.detail)
        for program in reading.view.programs
        if not program.ready
    ]
    streams = [
        Problem(row.name, row.state, row.note_summary, f"/streams/{row.name}")
        for row in rows
        if row.needs_attention
    ]
    return [*programs, *streams]


def sum_streams(reading: StackReading, rows: Sequence[StreamRow]) -> StackTotals:
    """Return the sums of all streams."""
    rates = list(reading.view.rates.values())
    read = sum(rate.records_read for rate in rates)
    started = [row for row in rows if row.is_in("started")]
    return StackTotals(
        sum(row.is_in("running") for row in rows),
        len(started),
        sum(rate.records_per_second for rate in rates),
        sum(row.lag_records or 0 for row in started),
        max((row.watermark_delay_ms for row in started if row.watermark_delay_ms is not None), default=None),
        _weighted_share([(rate.late_share, rate.records_read) for rate in rates], read),
        _weighted_share([(rate.invalid_share, rate.records_read) for rate in rates], read),
    )


def _weighted_share(shares: Sequence[tuple[float | None, int]], total: int) -> float | None:
    return sum((share or 0) * count for share, count in shares) / total if total else None


def _lay_out_shown(context: ConsoleContext, reading: StackReading, table: StreamTable) -> GraphLayout:
    shown = {row.name for row in table.rows[:MAX_STREAMS]}
    running = [each for each in reading.view.streams if each.stream in shown and reading.view.is_leased(each)]
    at_ms = reading.view.at_ms
    since = {each.stream: find_rates_start(each, at_ms) for each in running}
    flows = read_recent_flows(context.store, since, at_ms)
    return lay_out_graph(
        build_stack_graph(table.rows, {name: context.ends.read(name) for name in shown}, flows)
    )


ROUTES = [LivePage("overview.html", read_overview_page).route("/", "overview")]
