"""Why a run over stored records quarantined records."""

from collections import Counter
from collections.abc import Iterable

from deltalake import DeltaTable

from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.parse.source_rules import build_record_rules
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.ingestion.contracts.record_judge import record_judge
from penstock.ingestion.errors import InvalidRecordError
from penstock.ingestion.refused_records import RefusedReason, shorten_value


def list_refused(plan: Plan, warehouse: StoragePath, tables: Iterable[str]) -> tuple[RefusedReason, ...]:
    """Return the reasons in the quarantines of a run, the most frequent first."""
    names = set(tables)
    refused = [
        reason
        for source in plan.sources
        if (path := f"quarantine/{source.name}") in names
        for reason in _summarize(source, open_delta_table(warehouse / path))
    ]
    return tuple(sorted(refused, key=lambda each: -each.records))


def _summarize(source: PlanSource, table: DeltaTable) -> Iterable[RefusedReason]:
    rows = table.to_pyarrow_table(columns=["reason", "value", "partition", "offset"]).to_pylist()
    counts = Counter(row["reason"] for row in rows)
    first_rows = {row["reason"]: row for row in sorted(rows, key=_address, reverse=True)}
    shows_values = not any(column.personal for column in source.columns)
    for reason, count in counts.items():
        row = first_rows[reason]
        value = shorten_value(row["value"] or b"") if shows_values else ""
        yield RefusedReason(
            reason, count, _explain(source, row["value"]), value, f"{row['partition']}:{row['offset']}"
        )


def _address(row: dict[str, int]) -> tuple[int, int]:
    return row["partition"], row["offset"]


def _explain(source: PlanSource, value: bytes | None) -> str:
    rules = build_record_rules(source)
    if rules is None or value is None:
        return ""
    try:
        record_judge(rules).decode(value)
    except InvalidRecordError as error:
        return error.detail
    return ""
