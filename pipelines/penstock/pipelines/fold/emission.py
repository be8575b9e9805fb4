"""Which windows show a pane, and what it says: the only place where panes are made."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import Column, Rows, arrow
from penstock.pipelines.fold.stage import ReadyStage, shown_name
from penstock.pipelines.state.columns import Mask


@dataclass(frozen=True)
class Firing:
    """What each window does in this batch: `inserts` writes a pane, `retracts` first takes the last one back."""

    inserts: Mask
    retracts: Mask
    timing: Column
    final: Mask


def emit(stage: ReadyStage, rows: Rows, names: pa.Table, moment: Moment) -> pa.Table:
    """Fire what is ready, note in the rows that it fired, and return the panes, retractions first."""
    fires, timing, final = _fire(stage, rows, moment)
    now = [each.values(rows) for each in stage.accumulators]
    before = [each.values(_as_shown(stage, rows)) for each in stage.accumulators] if stage.retracts else now
    firing = _refine(stage, rows, fires, timing, final, _same(now, before))
    records = "unshown" if stage.plan.accumulation == "discarding" else "records"
    writer = _Writer(stage, rows, names, firing, moment)
    retracted = writer.panes("retract", firing.retracts, before, rows["shown_records"])
    inserted = writer.panes("insert", firing.inserts, now, rows[records])
    _note(stage, rows, fires, firing)
    return pa.concat_tables([retracted, inserted])


def waits_for_end(stage: ReadyStage, rows: Rows, moment: Moment) -> Mask:
    """Windows past their end whose firing at the end is still to come, with or without new elements."""
    ended = rows["window_end"] <= moment.watermark
    return np.asarray(ended & ~rows["past_end"] & stage.machine.at_end(rows, moment))


def _fire(stage: ReadyStage, rows: Rows, moment: Moment) -> tuple[Mask, Column, Mask]:
    """Which windows fire, with what timing, and whether for the last time."""
    new, active = rows["unshown"] > 0, ~rows["finished"]
    ended = rows["window_end"] <= moment.watermark
    at_end = waits_for_end(stage, rows, moment)
    ready = active & stage.machine.ready(rows, moment) & (new | at_end)
    closing = active & (stage.closes_at(rows["window_end"]) <= moment.watermark)
    last = {"never": closing & False, "when_changed": closing & new, "always": closing}[stage.plan.final_pane]
    on_time = ready & at_end & (rows["window_end"] > moment.watermark_before)
    finished = stage.machine.fire(rows, ready, moment)
    rows["past_end"] |= ready & at_end
    rows["finished"] |= finished
    silent = on_time & ~new & ~last if stage.plan.on_time_pane == "when_changed" else closing & False
    timing = np.where(on_time, "on_time", np.where(ended, "late", "early"))
    return (ready | last) & ~silent, timing, closing | finished


def _refine(stage: ReadyStage, rows: Rows, fires: Mask, timing: Column, final: Mask, same: Mask) -> Firing:
    if not stage.retracts:
        return Firing(fires, fires & False, timing, final)
    again = fires & rows["shown"]
    needless = again & same & (timing != "on_time") & ~final
    return Firing(fires & ~needless, again & ~same, timing, final)


def _as_shown(stage: ReadyStage, rows: Rows) -> Rows:
    """The aggregates as they were at the last pane."""
    return Rows({part.name: rows[shown_name(part.name)] for part in stage.parts}, len(rows))


def _same(now: Sequence[Column], before: Sequence[Column]) -> Mask:
    """Whether all values are equal, nulls and NaN being equal to themselves."""
    pairs = zip(now, before, strict=True)
    equal = [(a == b) | ((a != a) & (b != b)) for a, b in pairs]
    return np.asarray(np.logical_and.reduce(equal), bool)


def _note(stage: ReadyStage, rows: Rows, fires: Mask, firing: Firing) -> None:
    rows["panes"] += firing.inserts
    rows["on_time_panes"] += firing.inserts & (firing.timing != "early")
    rows["shown"] |= firing.inserts
    rows["unshown"][fires] = 0
    if stage.retracts:
        rows["shown_records"][fires] = rows["records"][fires]
        for part in stage.parts:
            rows[shown_name(part.name)][fires] = rows[part.name][fires]
    if stage.plan.accumulation == "discarding":
        for part in stage.parts:
            rows[part.name][fires] = part.slot.initial


@dataclass(frozen=True)
class _Writer:
    """Writes rows of panes about the windows of one batch."""

    stage: ReadyStage
    rows: Rows
    names: pa.Table
    firing: Firing
    moment: Moment

    def panes(self, kind: str, who: Mask, values: Sequence[Column], records: Column) -> pa.Table:
        """A row for each window in `who`."""
        schema, count = self.stage.pane_columns, int(who.sum())
        named = self.names.filter(pa.array(who))
        timing = self.firing.timing[who]
        index = np.where(timing == "early", -1, self.rows["on_time_panes"][who]).astype(np.int32)
        columns = {name: named.column(name) for name in named.column_names}
        for each, value in zip(self.stage.accumulators, values, strict=True):
            columns[each.output] = arrow(value[who], each.type)
        columns |= {
            "pane": pa.array(self.rows["panes"][who]),
            "timing": pa.array(timing, pa.string()),
            "on_time_index": pa.array(index),
            "final": pa.array(self.firing.final[who]),
            "kind": pa.array([kind] * count, pa.string()),
            "records": pa.array(records[who]),
            "batch_id": pa.array(np.full(count, self.moment.batch_id, np.int64)),
            "batch_clock": pa.array(np.full(count, self.moment.clock, np.int64)),
            "watermark": pa.array(np.full(count, self.moment.watermark, np.int64)),
        }
        return pa.table([columns[field.name] for field in schema], schema=schema)
