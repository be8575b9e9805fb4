"""The fold of windows that a record's time alone decides: fixed, sliding, calendar, global.

Every record already knows its windows when it comes here, so a window is found by its key and bounds, and what
a batch costs is what it touched: the windows that got elements, and those for which the watermark or the clock
came to something.
"""

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.emission import emit
from penstock.pipelines.fold.identity import key_hashes, window_hashes
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import fresh, numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import (
    Outcome,
    Touched,
    due_groups,
    missed,
    named,
    position_in,
    settled,
    take_in,
    together,
)
from penstock.pipelines.state.columns import Ints, Mask
from penstock.pipelines.state.run import Groups
from penstock.pipelines.state.tree import Tree


def fold_windows(stage: ReadyStage, state: Tree, partials: pa.Table, moment: Moment) -> Outcome:
    """Fold a batch's partials into the windows that they name."""
    late = _outside(stage, partials, moment)
    accepted = partials.filter(pa.array(~late))
    came = _windows_of(stage, accepted)
    groups = together(came, due_groups(state, moment))
    windows = position_in(groups, came)
    touched = _gather(stage, state, groups, accepted, windows)
    finished = touched.rows["finished"][windows]
    late[np.flatnonzero(~late)[finished]] = True
    take_in(stage, touched.rows, accepted.filter(pa.array(~finished)), windows[~finished], moment)
    emitted = emit(stage, touched.rows, touched.names, moment)
    refused = partials.filter(pa.array(late))
    bounds = (refused.column(name).combine_chunks() for name in ("window_start", "window_end"))
    return Outcome(
        settled(stage, touched, moment),
        emitted.panes,
        late,
        missed(stage, refused, *bounds),
        emitted.restated,
    )


def _outside(stage: ReadyStage, partials: pa.Table, moment: Moment) -> Mask:
    """Partials of windows that were closed before this batch, or of records that lie in no window at all."""
    end = partials.column("window_end")
    closed = stage.closes_at(numpy_column(end)) <= moment.watermark_before
    return np.asarray(closed | np.asarray(end.is_null()))


def _windows_of(stage: ReadyStage, partials: pa.Table) -> Groups:
    keys = key_hashes([partials.column(field.name) for field in stage.key], partials.num_rows)
    start, end = (numpy_column(partials.column(name)) for name in ("window_start", "window_end"))
    return window_hashes(keys, start, end)


def _gather(stage: ReadyStage, state: Tree, groups: Groups, accepted: pa.Table, windows: Ints) -> Touched:
    """What is known of each group's window; the names of a new one come with the partial that brought it."""
    known, positions = state.lookup(groups)
    rows = fresh(stage.kept, len(groups))
    for slot in stage.kept:
        rows[slot.name][positions] = numpy_column(known.column(slot.name))
    names = named(stage.names.names, known, positions, accepted, windows, len(groups))
    for name in ("window_start", "window_end"):
        rows[name] = numpy_column(names.column(name))
    return Touched(groups, rows, names)
