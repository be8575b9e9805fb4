"""Records when a stream changed to another definition: its earlier results would differ under the new one.

A file beside the journal has the changes; it stays when the journal removes the batches before.
"""

from pathlib import Path

import msgspec

from penstock.core.files import write_atomically
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.errors import JournalError
from penstock.engine.plan.stages import Plan
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS
from penstock.engine.tables.table_paths import list_result_paths

_CHANGES_FILE = "changes.json"


class DefinitionChange(msgspec.Struct, frozen=True):
    """Another definition applies to the batches after `after`.

    `newest` is the greatest event time read until then; None before the first record. `is_time_bounded` is false
    if event times do not tell which windows have only newer records. `tables` are results that the change added.
    """

    after: int
    newest: int | None
    is_time_bounded: bool
    tables: list[str]


def record_change(journal: Path, previous_plan: Plan, plan: Plan, last_outcome: BatchOutcome) -> None:
    """Record that a stream follows a plan after a batch; repeating it changes nothing."""
    new_change = DefinitionChange(
        last_outcome.batch_id,
        _newest_event_time(last_outcome),
        _is_time_bounded(previous_plan, plan),
        _new_result_tables(previous_plan, plan),
    )
    earlier_changes = []
    for change in read_definition_changes(journal):
        if change.after == new_change.after:  # no batch ran under the recorded definition
            tables = {*change.tables, *new_change.tables}
            new_change = DefinitionChange(
                new_change.after,
                new_change.newest,
                new_change.is_time_bounded and change.is_time_bounded,
                sorted(tables),
            )
        else:
            earlier_changes.append(change)
    write_atomically(journal / _CHANGES_FILE, msgspec.json.encode([*earlier_changes, new_change]))


def read_definition_changes(journal: Path) -> list[DefinitionChange]:
    """Return every change of a stream's definition, oldest first. Raises JournalError if they cannot be read."""
    path = journal / _CHANGES_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[DefinitionChange])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        fix = "Restore the file from a backup, or replay the stream into new tables"
        raise JournalError(path, f"cannot be read ({error})", fix) from error


def _newest_event_time(last_outcome: BatchOutcome) -> int | None:
    """Return the greatest event time that advanced a watermark; times in the future advance none."""
    event_times = [
        mark.newest
        for mark in (last_outcome.watermark.marks or {}).values()
        if mark.newest > MIN_TIMESTAMP_MS
    ]
    return max(event_times, default=None)


def _is_time_bounded(previous_plan: Plan, plan: Plan) -> bool:
    """Whether watermarks bound the event times read, and deduplication is unchanged."""
    new_sources = {source.name: source for source in plan.sources}
    return all(source.name in new_sources for source in previous_plan.sources) and all(
        not (rule.max_future_skew is not None and rule.future_records == "accept")
        and source.deduplication == new_sources[source.name].deduplication
        for source in previous_plan.sources
        for rule in (source.watermark, new_sources[source.name].watermark)
    )


def _new_result_tables(previous_plan: Plan, plan: Plan) -> list[str]:
    return sorted({*list_result_paths(plan)} - {*list_result_paths(previous_plan)})
