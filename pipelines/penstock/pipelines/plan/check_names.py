"""What columns may be called: none hides another, nor one that a pane or the state has."""

from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.columns import values_of
from penstock.pipelines.plan.relaying import RELAYED
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.windows import PairWindow, Window, in_order

RESERVED = frozenset(
    {
        "window_start",
        "window_end",
        "window_number",
        "pane",
        "timing",
        "on_time_index",
        "final",
        "kind",
        "records",
        "batch_id",
        "batch_clock",
        "watermark",
        "replaced_by_start",
        "replaced_by_end",
    }
)
"""Columns that every pane has, or every session."""

KEPT = frozenset(
    {
        *("group_hi", "group_lo", "due_event", "due_clock", "dropped"),
        *("records", "unshown", "panes", "on_time_panes", "past_end", "finished", "shown", "shown_records"),
        *("finished_at_end", "owed_to", "elements", "news", "piece_start", "piece_end"),
    }
)
"""Columns that every state keeps beside a key."""

KEPT_IN_ORDER = frozenset({"number", "since", "position", "came", "base"})
KEPT_OF_PAIRS = frozenset({"of_left", "time", "matched"})
"""Columns that the state of order windows, and of joins without windows, keeps besides."""


def check_names(stage: Stage) -> None:
    """Refuse result columns that hide each other or a pane's own."""
    every = stage.window.columns if isinstance(stage.window, Remembering) else ()
    names = [*stage.key, *([column.name for column in every] or values_of(stage))]
    for topic in stage.topics:
        ours = [name for name in names if name in {column.name for column in RELAYED}]
        found = f"{', '.join(ours)} is a column that every published pane has"
        require(not ours, f"publish.{topic.topic}", found, "Choose another name")
    lower = [name.lower() for name in names]
    for name in stage.key:
        fix = "Give it another name in a step before, as in select(my_name='its_name', ...)"
        require(
            name.lower() not in kept_beside(stage.window), "key", f"{name!r} is a column of the state", fix
        )
        require(
            lower.count(name.lower()) == 1 or stage.key.count(name) == 1,
            "key",
            f"{name!r} is named twice",
            "Name it once",
        )
    for name in names:
        reserved = name.lower() in RESERVED
        taken = "is a column that every pane has" if reserved else "is used twice"
        # Tables tell no columns apart that differ in their case alone.
        once = lower.count(name.lower()) == 1
        require(once and not reserved, f"aggregate.{name}", taken, "Choose another name")


def kept_beside(window: Window) -> frozenset[str]:
    """Return the columns that the state keeps beside a key, of which none can be called that."""
    if isinstance(window, PairWindow):
        return KEPT | KEPT_OF_PAIRS
    return KEPT | KEPT_IN_ORDER if in_order(window) else KEPT
