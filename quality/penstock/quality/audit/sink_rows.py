"""What the sinks of a stream hold, and what they should hold."""

from collections.abc import Sequence

import pyarrow as pa

from penstock.engine.plan.sinks import PaneContent, Sink
from penstock.quality.audit.result_comparison import latest_panes
from penstock.quality.audit.scope import AuditScope
from penstock.quality.table_reads import read_as_of, read_rows, require_table


def read_stored_rows(scope: AuditScope, sink: Sink) -> pa.Table | None:
    """Return the rows of a sink after the last audited batch; None if the sink cannot tell them."""
    path = scope.warehouse / sink.path
    if not sink.is_delta_table:
        return sink.read_rows(path, scope.plan.name, scope.upto)
    is_latest = sink.content is PaneContent.LATEST
    stored_rows = read_as_of(path, scope.plan.name, scope.upto) if is_latest else read_rows(path, scope.upto)
    return require_table(path, stored_rows)


def select_expected_rows(sink: Sink, panes: pa.Table, identity: Sequence[str]) -> pa.Table:
    """Return the rows that a sink makes of all panes of its stage."""
    taken_panes = sink.select_panes(panes)
    return latest_panes(taken_panes, identity) if sink.content is PaneContent.LATEST else taken_panes


def describe_incomparable(paths: Sequence[str]) -> str:
    """Name the sinks that the audit cannot compare, as the end of a sentence; empty if it compares all."""
    return f"; not comparable, because the sink does not return its rows: {', '.join(paths)}" if paths else ""
