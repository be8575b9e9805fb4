"""Checks that every table of a stream is complete."""

from collections.abc import Iterator
from itertools import chain as one_after_another

from penstock.engine.errors import JournalError
from penstock.quality.audit.audit_check import stream_check
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.table_integrity import check_table_files
from penstock.quality.audit.verdict import AuditDifference, CheckOutcome, judge_differences


@stream_check("files", order=10)
def check_files(scope: AuditScope) -> CheckOutcome:
    """Every table is complete: it exists, its files exist with their size, and no batch was committed twice."""
    differences = one_after_another(
        find_missing_tables(scope),
        *(
            check_table_files(scope.warehouse / table, table, scope.table_requirements(table))
            for table in scope.tables
        ),
    )
    return judge_differences(
        differences, f"{len(scope.tables)} tables are complete, and each batch was committed once"
    )


def find_missing_tables(scope: AuditScope) -> Iterator[AuditDifference]:
    """Yield the required tables that do not exist.

    The journal tells which tables are required. A journal that cannot be read is a difference itself.
    """
    try:
        required_tables = scope.required_tables
    except JournalError as problem:
        yield AuditDifference(f"journal of {scope.plan.name}", str(problem))
        return
    for table in sorted(required_tables):
        if not (scope.warehouse / table / "_delta_log").exists():
            yield AuditDifference(
                table, f"table is missing, but {scope.plan.name} has written up to batch {scope.upto}"
            )
