"""When a stream began to go by another definition: what it made until then is not what it would make now.

It stands in a file beside the journal, and stays there when the journal has forgotten the batches before.
"""

from pathlib import Path
from uuid import uuid4

import msgspec

from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.errors import JournalError
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.state.columns import BEFORE_ALL
from penstock.pipelines.tables.places import results

_FILE = "changes.json"


class Change(msgspec.Struct, frozen=True):
    """Another definition holds for the batches after `after`.

    `newest` is the greatest event time that was read until then; None before the first record. Where it cannot be
    told which windows have no older record, `told` is false. `tables` of results begin with the new definition.
    """

    after: int
    newest: int | None
    told: bool
    tables: list[str]


def note_change(journal: Path, before: Plan, plan: Plan, last: Outcome) -> None:
    """Write down that a stream goes by a plan after a batch; noted again it changes nothing."""
    fresh = Change(last.batch_id, _newest(last), _told(before, plan), _begun(before, plan))
    kept = []
    for one in changes(journal):
        if one.after == fresh.after:  # no batch was made by what was noted before
            together = {*one.tables, *fresh.tables}
            fresh = Change(fresh.after, fresh.newest, fresh.told and one.told, sorted(together))
        else:
            kept.append(one)
    path = journal / _FILE
    partial = path.with_name(f"{_FILE}.{uuid4().hex[:8]}.partial")
    partial.write_bytes(msgspec.json.encode([*kept, fresh]))
    partial.replace(path)


def changes(journal: Path) -> list[Change]:
    """Return every change of a stream's definition, from old to young. JournalError where they cannot be read."""
    path = journal / _FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Change])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as problem:
        fix = "Restore the file from a backup, or replay the stream into new tables"
        raise JournalError(path, f"cannot be read ({problem})", fix) from problem


def _newest(last: Outcome) -> int | None:
    """The greatest event time that moved a mark: what is too far ahead of the clock moves none."""
    times = [mark.newest for mark in (last.watermark.marks or {}).values() if mark.newest > BEFORE_ALL]
    return max(times, default=None)


def _told(before: Plan, plan: Plan) -> bool:
    """Tell whether the marks bound what was read, and repeats are told from first records by one rule."""
    ours = {source.name: source for source in plan.sources}
    return all(source.name in ours for source in before.sources) and all(
        not (rule.max_ahead is not None and rule.ahead == "accept")
        and source.deduplication == ours[source.name].deduplication
        for source in before.sources
        for rule in (source.watermark, ours[source.name].watermark)
    )


def _begun(before: Plan, plan: Plan) -> list[str]:
    return sorted({*results(plan)} - {*results(before)})
