"""How long after the end of a window a stage may still have something to say of it, by the watermark."""

from penstock.pipelines.plan.pairing import Between
from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.windows import PairWindow, by_processing_time, in_order


def goes_by_event_time(stage: Stage) -> bool:
    """Tell whether there is such a time: what goes by order or by the clock may lie behind any watermark."""
    if isinstance(stage.window, PairWindow | Relayed):
        return True
    return not in_order(stage.window) and not by_processing_time(stage.window)


def corrects_for(stage: Stage) -> int:
    """Return for how long; rows of a join that stand by one record's time may have waited for partners besides."""
    if isinstance(stage.window, Between):
        return stage.lateness + _waits_for(stage, stage.window)
    return stage.lateness


def _waits_for(stage: Stage, window: Between) -> int:
    """Return how much later than a record itself a partner may lie that decides about its row."""
    kind = "inner" if stage.join is None else stage.join.kind
    of_left = window.after if kind in ("left", "full", "semi", "anti") else 0
    of_right = window.before if kind in ("right", "full") else 0
    return max(of_left, of_right)
