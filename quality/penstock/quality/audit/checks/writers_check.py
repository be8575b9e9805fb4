"""Checks that no other stream wrote the tables of a stream."""

from collections.abc import Iterator
from datetime import UTC, datetime

from penstock.engine.storage.file_access import is_delta_table
from penstock.engine.tables.table_paths import list_owned_paths
from penstock.engine.tables.table_writers import TableWriter, list_current_writers
from penstock.quality.audit.audit_check import stream_check
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.verdict import AuditDifference, CheckOutcome, judge_differences
from penstock.quality.errors import DamagedTableError


@stream_check("writers", order=15)
def check_writers(scope: AuditScope) -> CheckOutcome:
    """Every batch in the tables that only this stream writes is its own. Others are named.

    Rows that a replay has replaced do not count.
    """
    tables = [table for table in list_owned_paths(scope.plan) if is_delta_table(scope.warehouse / table)]
    differences = (difference for table in tables for difference in _find_other_writers(scope, table))
    return judge_differences(differences, f"{len(tables)} tables have batches of {scope.plan.name} only")


def _find_other_writers(scope: AuditScope, table: str) -> Iterator[AuditDifference]:
    try:
        writers = list_current_writers(scope.warehouse / table)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedTableError(table, f"cannot be opened: its log cannot be read ({error})") from error
    for name, writer in writers.items():
        if name != scope.plan.name:
            fix = f"`penstock stream replay {scope.plan.name}` replaces all rows"
            yield AuditDifference(table, f"stream {name} wrote it too{_describe_commit(writer)}; {fix}")


def _describe_commit(writer: TableWriter) -> str:
    """Return the last batch of a writer, and its commit if the log still has it."""
    if writer.version is None or writer.committed_at_ms is None:
        return f", up to its batch {writer.last_batch}"
    committed_at = datetime.fromtimestamp(writer.committed_at_ms / 1000, UTC)
    time_text = f"{committed_at:%Y-%m-%d %H:%M:%S} UTC"
    return f", up to its batch {writer.last_batch} in version {writer.version} at {time_text}"
