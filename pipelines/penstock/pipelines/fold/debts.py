"""What sessions owe: the panes of windows that they swallowed, to be taken back or marked as replaced.

A debt is kept in the state as a row of the swallowed window, as it was when it last showed a pane. It is paid when
its owner shows something, and forgotten with an owner that is closed without ever having done so.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.emission import Firing, shown_values
from penstock.pipelines.fold.joined import spread
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.panes import About, pane_rows
from penstock.pipelines.fold.rows import Rows, known_rows, numpy_column
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
    settles = firing.shows[debts.owner]
    open_still = stage.closes_at(rows["window_end"]) > moment.watermark
    standing = debts.where(~settles & open_still[debts.owner])
    return _settlement(stage, debts.where(settles), firing, rows, moment), _kept(stage, standing, rows)


def _settlement(stage: ReadyStage, debts: Debts, firing: Firing, rows: Rows, moment: Moment) -> pa.Table:
    windows = known_rows(debts.known.select([slot.name for slot in stage.kept]))
    about = About(
        debts.known.select(stage.names.names),
        firing.timing[debts.owner],
        firing.final[debts.owner],
        windows["panes"],
        windows["on_time_panes"],
        windows["shown_records"],
    )
    if stage.retracts:
        return pane_rows(stage, moment, "retract", *spread(stage, about, shown_values(stage, windows))[:2])
    bounds = zip(REPLACED_BY, ("window_start", "window_end"), strict=True)
    by = {field.name: pa.array(rows[bound][debts.owner]) for field, bound in bounds}
    return pane_rows(stage, moment, "replaced", about, None, by)


def _kept(stage: ReadyStage, debts: Debts, rows: Rows) -> pa.Table:
    windows = known_rows(debts.known.select([slot.name for slot in stage.kept]))
    windows["owed_to"] = rows["window_start"][debts.owner]
    groups = Groups(hashes(debts.known, GROUP_HI), hashes(debts.known, GROUP_LO))
    never = np.full(len(windows), NEVER, np.int64)
    touched = Touched(groups, windows, debts.known.select(stage.names.names))
    return state_rows(stage, touched, never, never, np.zeros(len(windows), bool))
