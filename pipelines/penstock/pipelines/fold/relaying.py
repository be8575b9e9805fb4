"""The fold of panes that another stream published: shown as they are, for stages that read them as changes."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.errors import RelayError
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.panes import About, pane_rows
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import Outcome, missed
from penstock.pipelines.plan.relaying import CHANGE, LATENESS
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER
from penstock.pipelines.state.tree import Tree


def fold_relayed(stage: ReadyStage, state: Tree, elements: pa.Table, moment: Moment) -> Outcome:
    """Show each pane that is a change, in its own window. Nothing is kept, and nothing is late."""
    _refuse_more_lateness(stage, elements)
    changes = elements.filter(pc.not_equal(elements.column(CHANGE), 0))
    retracted, inserted = (_panes(stage, changes, kind, moment) for kind in ("retract", "insert"))
    panes = pa.concat_tables([retracted, inserted])
    none, nothing = np.empty(0, np.int64), stage.names.empty_table()
    late, again = np.zeros(elements.num_rows, bool), np.zeros(panes.num_rows, bool)
    return Outcome(state.schema.empty_table(), panes, late, missed(stage, nothing, none, none), again)


def _panes(stage: ReadyStage, changes: pa.Table, kind: str, moment: Moment) -> pa.Table:
    rows = changes.filter(pc.equal(changes.column(CHANGE), 1 if kind == "insert" else -1))
    count = rows.num_rows
    ends = (("window_start", BEFORE_ALL), ("window_end", NEVER))
    bounds = [pc.fill_null(rows.column(name), endless) for name, endless in ends]
    about = About(
        pa.table(bounds, schema=stage.names),
        timing=np.full(count, "on_time"),
        final=np.zeros(count, bool),
        panes=np.zeros(count, np.int32),
        on_time_panes=np.zeros(count, np.int32),
        records=np.ones(count, np.int64),
    )
    values = {each.output: rows.column(each.output) for each in stage.accumulators}
    return pane_rows(stage, moment, kind, about, None, values)


def _refuse_more_lateness(stage: ReadyStage, elements: pa.Table) -> None:
    """Windows may be corrected for no longer than is allowed here: such a correction would come too late."""
    longest = pc.max(elements.column(LATENESS)).as_py()
    if longest is not None and longest > stage.plan.lateness:
        topic = stage.plan.inputs[0]
        raise RelayError(topic, longest, stage.plan.lateness)
