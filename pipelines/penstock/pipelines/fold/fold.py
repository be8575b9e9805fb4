"""The fold of a batch: one pure function, whatever the stage's windows are."""

import pyarrow as pa

from penstock.pipelines.fold.at_once import fold_at_once
from penstock.pipelines.fold.in_time import fold_in_time
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.order.fold import fold_in_order
from penstock.pipelines.fold.pairing.fold import fold_pairs
from penstock.pipelines.fold.relaying import fold_relayed
from penstock.pipelines.fold.remembering import fold_remembering
from penstock.pipelines.fold.sessions import fold_sessions
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import Outcome
from penstock.pipelines.fold.windows import fold_windows
from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.windows import PairWindow
from penstock.pipelines.state.tree import Tree


def fold(stage: ReadyStage, state: Tree, partials: pa.Table, moment: Moment) -> Outcome:
    """Fold a batch's partials into the state. Pure: the same input gives the same outcome, row for row."""
    if isinstance(stage.plan.window, Relayed):
        return fold_relayed(stage, state, partials, moment)
    if isinstance(stage.plan.window, Remembering):
        if stage.plan.window.by_time:
            return fold_in_time(stage, state, partials, moment)
        if stage.plan.window.vectorised:
            return fold_at_once(stage, state, partials, moment)
        return fold_remembering(stage, state, partials, moment)
    if isinstance(stage.plan.window, PairWindow):
        return fold_pairs(stage, state, partials, moment)
    if stage.in_order:
        return fold_in_order(stage, state, partials, moment)
    if stage.merges:
        return fold_sessions(stage, state, partials, moment)
    return fold_windows(stage, state, partials, moment)
