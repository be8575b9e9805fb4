"""Which windows show a pane, and with what values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.differing import JoinedRows, differences
from penstock.pipelines.fold.joined import keyless, spread
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


@dataclass(frozen=True)
class Compared:
    """Which windows say what they said; of joins that take back, the rows that are gone, and those that are new."""

    same: Mask
    gone: JoinedRows | None = None
    new: JoinedRows | None = None


def emit(stage: ReadyStage, rows: Rows, names: pa.Table, moment: Moment) -> Emitted:
    """Fire what is ready, note in the rows that it fired, and return the panes."""
    shows, timing, final = _fire(stage, rows, moment)
    now = [each.values(rows) for each in stage.accumulators]
    before = shown_values(stage, rows) if stage.retracts else now
    compared = _compared(stage, names, now, before, shows & rows["shown"] if stage.retracts else shows)
    firing = _refine(stage, rows, shows, timing, final, compared.same)
    records = rows["unshown" if stage.plan.accumulation == "discarding" else "records"]
    in_part = _in_part(firing) & (compared.gone is not None)

    def panes(
        kind: str, who: Mask, values: Sequence[Column], elements: Column, differing: JoinedRows | None
    ) -> tuple[pa.Table, Ints]:
        """Their rows, and for each the window that it is of."""
        about = About(names, timing, final, rows["panes"], rows["on_time_panes"], elements)
        of = np.flatnonzero(who & ~in_part)
        whole, chosen, origin = spread(stage, about.take(of), [value[of] for value in values])
        made = pane_rows(stage, moment, kind, whole, chosen)
        if differing is None:
            return made, of[origin]
        some = differing.where((who & in_part)[differing.window])
        rest = pane_rows(stage, moment, kind, about.take(some.window), some.columns)
        return pa.concat_tables([made, rest]), np.append(of[origin], some.window)

    retracted, _ = panes("retract", firing.retracts, before, rows["shown_records"], compared.gone)
    inserted, of_inserted = panes("insert", firing.inserts, now, records, compared.new)
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


def _in_part(firing: Firing) -> Mask:
    """Which panes of a join show only the rows that differ: those that others are still to follow."""
    others_follow = (firing.timing != "on_time") & ~firing.final
    return np.asarray(firing.retracts & firing.inserts & others_follow, bool)


def _compared(
    stage: ReadyStage, names: pa.Table, now: Sequence[Column], before: Sequence[Column], again: Mask
) -> Compared:
    """Compare what windows say with what they said, those of joins that show it `again` row by row."""
    join = stage.plan.join
    if join is None or not stage.retracts:
        return Compared(_same(now, before))
    of, count = np.flatnonzero(again), len(again)
    old, new = ([column[of] for column in columns] for columns in (before, now))
    differing = differences(join, old, new, keyless(stage, names)[of])
    gone, new_rows = (JoinedRows(of[rows.window], rows.columns) for rows in differing)
    moved = np.append(gone.window, new_rows.window)
    same = np.ones(count, bool)
    same[moved] = False
    return Compared(same, gone, new_rows)


def _same(now: Sequence[Column], before: Sequence[Column]) -> Mask:
    """Whether all values are equal, nulls and NaN being equal to themselves."""
    pairs = zip(now, before, strict=True)
    equal = [np.asarray((a == b) | ((a != a) & (b != b)), bool) for a, b in pairs]
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
