"""The columns that stages store and emit: of windows, sessions, partials and panes."""

import pyarrow as pa

from penstock.engine.columnar import StateColumn
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS

WINDOW_BOUNDS = (pa.field("window_start", pa.int64()), pa.field("window_end", pa.int64()))

WINDOW_COLUMNS = (
    StateColumn("records", pa.int64(), 0),
    StateColumn("elements_since_pane", pa.int64(), 0),
    StateColumn("panes", pa.int32(), 0),
    StateColumn("on_time_panes", pa.int32(), 0),
    StateColumn("past_end", pa.bool_(), initial=False),
    StateColumn("finished", pa.bool_(), initial=False),
    StateColumn("has_pane", pa.bool_(), initial=False),
    StateColumn("last_pane_records", pa.int64(), 0),
)
"""State columns of every window: its elements, those since the last pane, its panes, and what the last pane
showed.
"""

SESSION_COLUMNS = (
    StateColumn("finished_at_end", pa.bool_(), initial=False),
    StateColumn("pending_for_start", pa.int64(), MAX_TIMESTAMP_MS),
)
"""Additional state columns of sessions.

`finished_at_end` marks a session that finished because its end passed; a merge that moves the end reopens it.
`pending_for_start` is MAX_TIMESTAMP_MS for a session. For a merged window whose panes are not yet retracted, it is
the start of the session that must retract them.
"""

PIECE_BOUNDS = (pa.field("piece_start", pa.int64()), pa.field("piece_end", pa.int64()))
"""The bounds covered by the records of a partial, each record from its time to its time plus the gap."""

REPLACED_BY_BOUNDS = (pa.field("replaced_by_start", pa.int64()), pa.field("replaced_by_end", pa.int64()))
"""The session that replaces a window, where panes are not retracted."""

CHANGE_COUNT_FIELD = pa.field("change_count", pa.int64())
"""The number of changes in a partial, additions and retractions alike. Triggers count these."""

PANE_FIELDS = (
    *WINDOW_BOUNDS,
    pa.field("pane", pa.int32()),
    pa.field("timing", pa.string()),
    pa.field("on_time_index", pa.int32()),
    pa.field("final", pa.bool_()),
    pa.field("kind", pa.string()),
    pa.field("records", pa.int64()),
    pa.field("batch_id", pa.int64()),
    pa.field("batch_clock", pa.int64()),
    pa.field("watermark", pa.int64()),
)
"""The columns of every pane, after its key and its values. Times are milliseconds."""


def last_pane_column(part: str) -> str:
    """Return the state column that stores what a part held at the last pane.

    Part names end with a suffix, so no part of another output has this name.
    """
    return f"{part}@last_pane"
