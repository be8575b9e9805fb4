"""How long a stage may still correct a window after its end, in event time."""

from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.join_windows import Between
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.windows import JoinWindow, is_processing_time, is_record_ordered


def is_event_time_bound(stage: Stage) -> bool:
    """Return whether corrections end in event time. For order windows and processing time they do not."""
    if isinstance(stage.window, JoinWindow | ChangelogWindows):
        return True
    return not is_record_ordered(stage.window) and not is_processing_time(stage.window)


def correction_time_ms(stage: Stage) -> int:
    """Return the time in milliseconds, including the time that rows of an interval join wait for a match."""
    if isinstance(stage.window, Between):
        return stage.lateness + _partner_wait_ms(stage, stage.window)
    return stage.lateness


def _partner_wait_ms(stage: Stage, window: Between) -> int:
    """Return how much later than a record a matching record may lie that decides whether its row is emitted."""
    kind = "inner" if stage.join is None else stage.join.kind
    left_wait_ms = window.after if kind in ("left", "full", "semi", "anti") else 0
    right_wait_ms = window.before if kind in ("right", "full") else 0
    return max(left_wait_ms, right_wait_ms)
