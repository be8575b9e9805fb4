"""How long after the end of a window a stage may still have something to say of it, by the watermark."""

from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.join_windows import Between
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.windows import JoinWindow, is_processing_time, is_record_ordered


def is_event_time_bound(stage: Stage) -> bool:
    """Tell whether there is such a time: what goes by order or by the clock may lie behind any watermark."""
    if isinstance(stage.window, JoinWindow | ChangelogWindows):
        return True
    return not is_record_ordered(stage.window) and not is_processing_time(stage.window)


def correction_time_ms(stage: Stage) -> int:
    """Return for how long; rows of a join that stand by one record's time may have waited for partners besides."""
    if isinstance(stage.window, Between):
        return stage.lateness + _partner_wait_ms(stage, stage.window)
    return stage.lateness


def _partner_wait_ms(stage: Stage, window: Between) -> int:
    """Return how much later than a record itself a partner may lie that decides about its row."""
    kind = "inner" if stage.join is None else stage.join.kind
    left_wait_ms = window.after if kind in ("left", "full", "semi", "anti") else 0
    right_wait_ms = window.before if kind in ("right", "full") else 0
    return max(left_wait_ms, right_wait_ms)
