"""Which windows show a pane, and with what values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.joined import keyless, same_rows, spread
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.panes import About, pane_rows
from penstock.pipelines.fold.rows import Column, Rows
from penstock.pipelines.fold.stage import ReadyStage, shown_name
from penstock.pipelines.state.columns import Ints, Mask


@dataclass(frozen=True)
class Firing:
    """What each window does in this batch.

    `shows` has something to say; `inserts` writes it as a pane; `retracts` first takes the last one back;
    `restates` inserts what stands already, because it is on time or final.
    """

    shows: Mask
    inserts: Mask
    retracts: Mask
    restates: Mask
    timing: Column
    final: Mask


@dataclass(frozen=True)
class Emitted:
    """The panes of a batch, retractions first, which of them restate what stands, and how they came about."""

    panes: pa.Table
    restated: Mask
    firing: Firing


def emit(stage: ReadyStage, rows: Rows, names: pa.Table, moment: Moment) -> Emitted:
    """Fire what is ready, note in the rows that it fired, and return the panes."""
    shows, timing, final = _fire(stage, rows, moment)
    now = [each.values(rows) for each in stage.accumulators]
    before = shown_values(stage, rows) if stage.retracts else now
    firing = _refine(stage, rows, shows, timing, final, _same(stage, names, now, before))
    records = rows["unshown" if stage.plan.accumulation == "discarding" else "records"]

    def panes(kind: str, who: Mask, values: Sequence[Column], elements: Column) -> tuple[pa.Table, Ints]:
        """Their rows, and for each the window that it is of."""
        about = About(names, timing, final, rows["panes"], rows["on_time_panes"], elements)
        of = np.flatnonzero(who)
        about, chosen, origin = spread(stage, about.take(of), [value[of] for value in values])
        return pane_rows(stage, moment, kind, about, chosen), of[origin]

    retracted, _ = panes("retract", firing.retracts, before, rows["shown_records"])
    inserted, of_inserted = panes("insert", firing.inserts, now, records)
    _note(stage, rows, firing)
    restated = np.append(np.zeros(retracted.num_rows, bool), firing.restates[of_inserted])
    return Emitted(pa.concat_tables([retracted, inserted]), restated, firing)


def shown_values(stage: ReadyStage, rows: Rows) -> list[Column]:
    """What the last pane of each window said."""
    shown = Rows({part.name: rows[shown_name(part.name)] for part in stage.parts}, len(rows))
    return [each.values(shown) for each in stage.accumulators]


def _fire(stage: ReadyStage, rows: Rows, moment: Moment) -> tuple[Mask, Column, Mask]:
    """Which windows show something, with what timing, and whether for the last time."""
    new, active = rows["unshown"] > 0, ~rows["finished"]
    ended = rows["window_end"] <= moment.watermark
    at_end = ended & ~rows["past_end"] & stage.machine.at_end(rows, moment)
    # Without news only the end itself fires: what comes later comes from a timer, and its elements were shown.
    ending = at_end & (rows["window_end"] > moment.watermark_before)
    ready = active & stage.machine.ready(rows, moment) & (new | ending)
    closing = active & (stage.closes_at(rows["window_end"]) <= moment.watermark)
    on_time = ready & ending
    finished = stage.machine.fire(rows, ready, moment)
    asked = {"never": closing & False, "when_changed": closing & new, "always": closing | finished}
    last = asked[stage.plan.final_pane]
    rows["past_end"] |= ready & at_end
    rows["finished"] |= finished
    if stage.merges:
        rows["finished_at_end"] |= finished & at_end
    silent = on_time & ~new & ~last if stage.plan.on_time_pane == "when_changed" else closing & False
    timing = np.where(on_time, "on_time", np.where(ended, "late", "early"))
    return (ready | last) & ~silent, timing, closing | finished


def _refine(stage: ReadyStage, rows: Rows, shows: Mask, timing: Column, final: Mask, same: Mask) -> Firing:
    if not stage.retracts:
        return Firing(shows, shows, shows & False, shows & False, timing, final)
    again = shows & rows["shown"]
    # Where changes took back every element there is nothing to say, but that what was said is gone.
    gone = rows["records"] == 0
    needless = again & same & (timing != "on_time") & ~final
    inserts = shows & ~needless & ~gone
    return Firing(shows, inserts, again & (~same | gone), inserts & again & same, timing, final)


def _same(stage: ReadyStage, names: pa.Table, now: Sequence[Column], before: Sequence[Column]) -> Mask:
    """Whether all values are equal, nulls and NaN being equal to themselves; or all rows of a join."""
    pairs = zip(now, before, strict=True)
    equal = [np.asarray((a == b) | ((a != a) & (b != b)), bool) for a, b in pairs]
    join = stage.plan.join
    if join is not None and stage.retracts:
        return same_rows(join, now, before, equal, keyless(stage, names))
    return np.asarray(np.logical_and.reduce(equal), bool)


def _note(stage: ReadyStage, rows: Rows, firing: Firing) -> None:
    shows = firing.shows
    rows["panes"] += firing.inserts
    rows["on_time_panes"] += firing.inserts & (firing.timing != "early")
    rows["shown"] = np.where(shows, rows["records"] > 0, rows["shown"])
    rows["unshown"][shows] = 0
    if stage.retracts:
        rows["shown_records"][shows] = rows["records"][shows]
        for part in stage.parts:
            rows[shown_name(part.name)][shows] = rows[part.name][shows]
    if stage.plan.accumulation == "discarding":
        for part in stage.parts:
            rows[part.name][shows] = part.slot.initial
