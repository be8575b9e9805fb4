"""Checks of column names: they must be unique, and different from the columns of panes and of the state."""

from penstock.engine.definition.argument_checks import require
from penstock.engine.plan.changelog import CHANGELOG_COLUMNS
from penstock.engine.plan.columns import stage_value_columns
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.windows.join_window import JoinWindow
from penstock.engine.windows.window import Window

RESERVED_COLUMNS = frozenset(
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
"""Columns of every pane, or of every session pane."""

STATE_COLUMNS = frozenset(
    {
        *("group_hi", "group_lo", "due_event", "due_clock", "dropped"),
        *(
            "records",
            "elements_since_pane",
            "panes",
            "on_time_panes",
            "past_end",
            "finished",
            "has_pane",
            "last_pane_records",
        ),
        *("finished_at_end", "pending_for_start", "elements", "change_count", "piece_start", "piece_end"),
    }
)
"""Columns of every state besides the key."""

ORDER_STATE_COLUMNS = frozenset({"number", "since_clock", "position", "arrival_clock", "base_value"})
JOIN_STATE_COLUMNS = frozenset({"is_left", "time", "matched"})
"""Additional state columns of order windows, and of joins without windows."""

FUNCTION_STATE_COLUMNS = frozenset(
    {"function_state", "has_function_state", "timers", "newest_time", "waiting_records"}
)
FUNCTION_STATE_PREFIX = "function_state_"
"""Additional state columns of stateful functions. A vectorized one has a column for each field of its state."""


def check_column_names(stage: Stage) -> None:
    """Refuse result columns that conflict with each other or with pane columns."""
    function_columns = stage.window.columns if isinstance(stage.window, StatefulFunction) else ()
    names = [*stage.key, *([column.name for column in function_columns] or stage_value_columns(stage))]
    for topic in stage.topics:
        changelog_names = [name for name in names if name in {column.name for column in CHANGELOG_COLUMNS}]
        problem = f"{', '.join(changelog_names)} is a column of every published pane"
        require(not changelog_names, f"publish.{topic.name}", problem, "Choose another name")
    lower_names = [name.lower() for name in names]
    for name in stage.key:
        fix = "Rename it in a step before, as in select(new_name='old_name', ...)"
        require(
            not is_state_column(stage.window, name.lower()),
            "key",
            f"{name!r} is a column of the state",
            fix,
        )
        require(
            lower_names.count(name.lower()) == 1 or stage.key.count(name) == 1,
            "key",
            f"{name!r} is given twice",
            "Name it once",
        )
    for name in names:
        is_reserved = name.lower() in RESERVED_COLUMNS
        conflict = "is a column of every pane" if is_reserved else "is used twice"
        # Column names in tables are case-insensitive.
        is_unique = lower_names.count(name.lower()) == 1
        require(is_unique and not is_reserved, f"aggregate.{name}", conflict, "Choose another name")


def is_state_column(window: Window, name: str) -> bool:
    """Tell whether the state of a stage with this window has a column of this name, besides its key."""
    is_function_field = isinstance(window, StatefulFunction) and name.startswith(FUNCTION_STATE_PREFIX)
    return is_function_field or name in reserved_state_columns(window)


def reserved_state_columns(window: Window) -> frozenset[str]:
    """Return the state columns that a key column must not be named after."""
    if isinstance(window, JoinWindow):
        return STATE_COLUMNS | JOIN_STATE_COLUMNS
    if isinstance(window, StatefulFunction):
        return STATE_COLUMNS | ORDER_STATE_COLUMNS | FUNCTION_STATE_COLUMNS
    return STATE_COLUMNS | ORDER_STATE_COLUMNS if window.is_record_ordered else STATE_COLUMNS
