"""When a stream began to go by another definition: what it made until then is not what it would make now.

It stands in a file beside the journal, and stays there when the journal has forgotten the batches before.
"""

from pathlib import Path
from uuid import uuid4

import msgspec

from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.errors import JournalError
from penstock.engine.plan.stages import Plan
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS
from penstock.engine.tables.table_paths import list_result_paths

_CHANGES_FILE = "changes.json"


class DefinitionChange(msgspec.Struct, frozen=True):
    """Another definition holds for the batches after `after`.

    `newest` is the greatest event time that was read until then; None before the first record. Where it cannot be
    told which windows have no older record, `told` is false. `tables` of results begin with the new definition.
    """

    after: int
    newest: int | None
    is_time_bounded: bool
    tables: list[str]


def record_change(journal: Path, previous_plan: Plan, plan: Plan, last_outcome: BatchOutcome) -> None:
    """Write down that a stream goes by a plan after a batch; noted again it changes nothing."""
    new_change = DefinitionChange(
        last_outcome.batch_id,
        _newest_event_time(last_outcome),
        _is_time_bounded(previous_plan, plan),
        _new_result_tables(previous_plan, plan),
    )
    earlier_changes = []
    for change in read_definition_changes(journal):
        if change.after == new_change.after:  # no batch was made by what was noted before
            tables = {*change.tables, *new_change.tables}
            new_change = DefinitionChange(
                new_change.after,
                new_change.newest,
                new_change.is_time_bounded and change.is_time_bounded,
                sorted(tables),
            )
        else:
            earlier_changes.append(change)
    path = journal / _CHANGES_FILE
    partial_path = path.with_name(f"{_CHANGES_FILE}.{uuid4().hex[:8]}.partial")
    partial_path.write_bytes(msgspec.json.encode([*earlier_changes, new_change]))
    partial_path.replace(path)


def read_definition_changes(journal: Path) -> list[DefinitionChange]:
    """Return every change of a stream's definition, from old to young. JournalError where they cannot be read."""
    path = journal / _CHANGES_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[DefinitionChange])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        fix = "Restore the file from a backup, or replay the stream into new tables"
        raise JournalError(path, f"cannot be read ({error})", fix) from error


def _newest_event_time(last_outcome: BatchOutcome) -> int | None:
    """The greatest event time that moved a mark: what is too far ahead of the clock moves none."""
    event_times = [
        mark.newest
        for mark in (last_outcome.watermark.marks or {}).values()
        if mark.newest > MIN_TIMESTAMP_MS
    ]
    return max(event_times, default=None)


def _is_time_bounded(previous_plan: Plan, plan: Plan) -> bool:
    """Tell whether the marks bound what was read, and repeats are told from first records by one rule."""
    new_sources = {source.name: source for source in plan.sources}
    return all(source.name in new_sources for source in previous_plan.sources) and all(
        not (rule.max_future_skew is not None and rule.future_records == "accept")
        and source.deduplication == new_sources[source.name].deduplication
        for source in previous_plan.sources
        for rule in (source.watermark, new_sources[source.name].watermark)
    )


def _new_result_tables(previous_plan: Plan, plan: Plan) -> list[str]:
    return sorted({*list_result_paths(plan)} - {*list_result_paths(previous_plan)})
