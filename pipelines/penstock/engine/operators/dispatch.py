"""One entry point for all operators: process a batch with the operator of the stage's window."""

import pyarrow as pa

from penstock.engine.batch_time import BatchTime
from penstock.engine.operators.changelog.changelog_source import process_changelog
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.joins.unwindowed_join import process_unwindowed_join
from penstock.engine.operators.ordered.operator import process_ordered_windows
from penstock.engine.operators.sessions.session_windows import process_sessions
from penstock.engine.operators.stateful.event_time import process_in_event_time
from penstock.engine.operators.stateful.per_key import process_per_key
from penstock.engine.operators.stateful.vectorized import process_vectorized
from penstock.engine.operators.windowed.assigned_windows import process_windows
from penstock.engine.operators.windowed.window_update import StageResult
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.state.state_tree import StateTree
from penstock.engine.windows.join_window import JoinWindow
from penstock.engine.windows.order_window import OrderWindow


def process_batch(
    stage: CompiledStage, state: StateTree, partials: pa.Table, batch_time: BatchTime
) -> StageResult:
    """Merge a batch's partials into the state and emit panes.

    Pure: the same input gives the same result, row for row.
    """
    if isinstance(stage.plan.window, ChangelogWindows):
        return process_changelog(stage, state, partials, batch_time)
    if isinstance(stage.plan.window, StatefulFunction):
        if stage.plan.window.is_event_time_ordered:
            return process_in_event_time(stage, state, partials, batch_time)
        if stage.plan.window.vectorized:
            return process_vectorized(stage, state, partials, batch_time)
        return process_per_key(stage, state, partials, batch_time)
    if isinstance(stage.plan.window, JoinWindow):
        return process_unwindowed_join(stage, stage.plan.window, state, partials, batch_time)
    if isinstance(stage.plan.window, OrderWindow):
        return process_ordered_windows(stage, stage.plan.window, state, partials, batch_time)
    if stage.has_merging_windows:
        return process_sessions(stage, state, partials, batch_time)
    return process_windows(stage, state, partials, batch_time)
