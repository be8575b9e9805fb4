"""How long a stage may still correct a window after its end, in event time."""

from penstock.engine.plan.stages import Stage
from penstock.engine.windows.join_window import JoinWindow


def correction_time_ms(stage: Stage) -> int:
    """Return the time in milliseconds, including the time that rows of an interval join wait for a match."""
    if isinstance(stage.window, JoinWindow):
        return stage.lateness + stage.window.partner_wait_ms(
            "inner" if stage.join is None else stage.join.kind
        )
    return stage.lateness
