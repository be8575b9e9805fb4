"""What sessions owe: the panes of windows that they swallowed, to be taken back or marked as replaced.

A debt is kept in the state as a row of the swallowed window, as it was when it last showed a pane. It is paid when
its owner shows something. What is to be taken back is taken back no later than the swallowed window would have
closed, whether or not anything stands in its place by then: after that no later stage could forget it. A mark that
waits for an owner which is closed without ever showing anything is forgotten with it.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.emission import Firing, shown_values
from penstock.pipelines.fold.joined import spread
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.panes import About, pane_rows
from penstock.pipelines.fold.rows import Column, Rows, known_rows, numpy_column
from penstock.pipelines.fold.stage import REPLACED_BY, ReadyStage
from penstock.pipelines.fold.touched import Touched, state_rows
from penstock.pipelines.state.columns import GROUP_HI, GROUP_LO, NEVER, Ints, Mask, hashes
from penstock.pipelines.state.run import Groups


@dataclass(frozen=True)
class Debts:
    """Swallowed windows, as the state keeps them, and the row in hand of the session that owes each."""

    known: pa.Table
    owner: Ints

    def where(self, chosen: Mask) -> "Debts":
        """Some of them."""
        return Debts(self.known.filter(pa.array(chosen)), self.owner[chosen])


def debts_of(owed: pa.Table, sessions: pa.Table, swallowed: Mask, row_of_session: Ints, owner: Ints) -> Debts:
    """What was owed before, now by what its owner became part of, and what is swallowed in this batch.

    `owner` names the session that owes each window of `owed`.
    """
    new = swallowed & numpy_column(sessions.column("shown"))
    known = pa.concat_tables([owed, sessions.filter(pa.array(new))])
    return Debts(known.combine_chunks(), np.append(row_of_session[owner], row_of_session[new]))


def paid(
    stage: ReadyStage, debts: Debts, firing: Firing, rows: Rows, moment: Moment
) -> tuple[pa.Table, pa.Table]:
    """The rows of panes that settle what can be settled, and the rows of the state for what still stands."""
    shows = firing.shows[debts.owner]
    closed = stage.closes_at(numpy_column(debts.known.column("window_end"))) <= moment.watermark
    overdue = closed & ~shows & stage.retracts
    open_still = (stage.closes_at(rows["window_end"]) > moment.watermark)[debts.owner]
    standing = debts.where(~shows & ~overdue & open_still)
    with_owner = _settlement(stage, debts.where(shows), firing, rows, moment)
    alone = _overdue(stage, debts.where(overdue), moment)
    return pa.concat_tables([with_owner, alone]), _kept(stage, standing, rows)


def _settlement(stage: ReadyStage, debts: Debts, firing: Firing, rows: Rows, moment: Moment) -> pa.Table:
    """Rows in favour of the owners' panes: with their timing, and final as they are."""
    about = _about(stage, debts, firing.timing[debts.owner], firing.final[debts.owner])
    if stage.retracts:
        return _taken_back(stage, debts, about, moment)
    bounds = zip(REPLACED_BY, ("window_start", "window_end"), strict=True)
    by = {field.name: pa.array(rows[bound][debts.owner]) for field, bound in bounds}
    return pane_rows(stage, moment, "replaced", about, None, by)


def _overdue(stage: ReadyStage, debts: Debts, moment: Moment) -> pa.Table:
    """Rows in favour of nothing yet: the last that is heard of windows whose time to be corrected is over."""
    if not stage.retracts:
        return stage.pane_columns.empty_table()
    count = len(debts.owner)
    about = _about(stage, debts, np.full(count, "late"), np.ones(count, bool))
    return _taken_back(stage, debts, about, moment)


def _about(stage: ReadyStage, debts: Debts, timing: Column, final: Mask) -> About:
    windows = _windows(stage, debts)
    counts = (windows["panes"], windows["on_time_panes"], windows["shown_records"])
    return About(debts.known.select(stage.names.names), timing, final, *counts)


def _taken_back(stage: ReadyStage, debts: Debts, about: About, moment: Moment) -> pa.Table:
    about, values, _ = spread(stage, about, shown_values(stage, _windows(stage, debts)))
    return pane_rows(stage, moment, "retract", about, values)


def _windows(stage: ReadyStage, debts: Debts) -> Rows:
    return known_rows(debts.known.select([slot.name for slot in stage.kept]))


def _kept(stage: ReadyStage, debts: Debts, rows: Rows) -> pa.Table:
    windows = _windows(stage, debts)
    windows["owed_to"] = rows["window_start"][debts.owner]
    groups = Groups(hashes(debts.known, GROUP_HI), hashes(debts.known, GROUP_LO))
    never = np.full(len(windows), NEVER, np.int64)
    touched = Touched(groups, windows, debts.known.select(stage.names.names))
    closes = stage.closes_at(numpy_column(debts.known.column("window_end")))
    due = closes if stage.retracts else never
    return state_rows(stage, touched, due, never, np.zeros(len(windows), bool))
