"""A stage made ready to be folded: its trigger as a machine, its aggregates as columns, its tables' schemas."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.fold.aggregates import Accumulator, Part, accumulator
from penstock.pipelines.fold.aggregates.restricted import OneSided, one_sided, unrestricted
from penstock.pipelines.fold.compile import machine
from penstock.pipelines.fold.machine import Machine
from penstock.pipelines.fold.order.slots import (
    ELEMENT,
    MATCHED,
    NUMBER,
    element_fields,
    order_slots,
    punctuation,
)
from penstock.pipelines.fold.pairing.slots import pair_slots
from penstock.pipelines.fold.returned import remembered, returned
from penstock.pipelines.fold.rows import Slot
from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.predicates import Predicate
from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.triggers import punctuations
from penstock.pipelines.plan.types import OF_ONE_VALUE
from penstock.pipelines.plan.used import used_fields
from penstock.pipelines.plan.windows import OrderWindow, PairWindow, Sessions, by_processing_time, in_order
from penstock.pipelines.state.columns import NEVER, Ints

BOUNDS = (pa.field("window_start", pa.int64()), pa.field("window_end", pa.int64()))

BOOKKEEPING = (
    Slot("records", pa.int64(), 0),
    Slot("unshown", pa.int64(), 0),
    Slot("panes", pa.int32(), 0),
    Slot("on_time_panes", pa.int32(), 0),
    Slot("past_end", pa.bool_(), initial=False),
    Slot("finished", pa.bool_(), initial=False),
    Slot("shown", pa.bool_(), initial=False),
    Slot("shown_records", pa.int64(), 0),
)
"""What is kept of every window: elements, those since the last pane, how many panes came, and what they said."""

OF_SESSIONS = (Slot("finished_at_end", pa.bool_(), initial=False), Slot("owed_to", pa.int64(), NEVER))
"""What is kept of sessions besides.

A session that finished because its end had passed goes on when a merge moves its end. `owed_to` is NEVER for a
session; a window that was swallowed and whose panes still stand names by it the start of the session that is to
take them back.
"""

PIECE = (pa.field("piece_start", pa.int64()), pa.field("piece_end", pa.int64()))
"""The bounds that the records of a partial reach, each from its time to a gap later."""

REPLACED_BY = (pa.field("replaced_by_start", pa.int64()), pa.field("replaced_by_end", pa.int64()))
"""The session that stands for a window from now on, where nothing is taken back."""

NEWS = pa.field("news", pa.int64())
"""How many changes a partial brings, whether they add elements or take some back: what a trigger counts."""

PANE = (
    *BOUNDS,
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
"""The columns that every pane has, after its key and its values; times are milliseconds in the fold."""


@dataclass(frozen=True)
class ReadyStage:
    """What the fold needs to know of a stage, worked out once."""

    plan: Stage
    machine: Machine
    accumulators: tuple[Accumulator, ...]
    key: tuple[pa.Field, ...]
    fields: tuple[pa.Field, ...] = ()
    """The fields of single records that it needs, for order windows."""
    changes: bool = False
    """Whether it reads the panes of other stages, of which some may take back what others brought."""
    one_sided: tuple[OneSided, ...] = ()
    """Columns that elements of one input alone have, for aggregates over them."""

    @property
    def results(self) -> list[pa.Field]:
        """The columns that people see beside key and window."""
        join = self.plan.join
        if join is None:
            return [pa.field(each.output, each.type) for each in self.accumulators]
        held = dict(zip((join.left, join.right), self.accumulators, strict=True))
        return [
            pa.field(each.name, held[each.input].type.value_type.field(each.field).type)
            for each in join.columns
        ]

    @property
    def parts(self) -> list[Part]:
        """Every column that its aggregates keep."""
        return [part for each in self.accumulators for part in each.parts]

    @property
    def names(self) -> pa.Schema:
        """What says which window a row is about: its key and its bounds."""
        return pa.schema([*self.key, *BOUNDS])

    @property
    def counted(self) -> list[str]:
        """The columns of a partial that are counted in."""
        apart = {*self.names.names, *(field.name for field in PIECE)}
        return [name for name in self.partial_columns.names if name not in apart]

    def closes_at(self, end: Ints) -> Ints:
        """The watermark at which windows close; a window without an end closes when its input has ended."""
        lateness = self.plan.lateness
        return np.where(end >= NEVER - lateness, NEVER, end + lateness)

    @property
    def merges(self) -> bool:
        """Whether its windows grow and become one: sessions."""
        return isinstance(self.plan.window, Sessions)

    @property
    def in_order(self) -> bool:
        """Whether it takes a key's records one by one, in their order."""
        return in_order(self.plan.window)

    @property
    def numbered(self) -> bool:
        """Whether a key's windows have numbers, beside bounds that others may have too."""
        return isinstance(self.plan.window, OrderWindow)

    @property
    def by_the_clock(self) -> bool:
        """Whether its windows are cut by the batch clock."""
        return by_processing_time(self.plan.window)

    @property
    def retracts(self) -> bool:
        """Whether it must remember what it showed."""
        return self.plan.accumulation == "retracting"

    @property
    def shown(self) -> list[Slot]:
        """What the aggregates held at the last pane, so that its values can be taken back."""
        return [Slot(shown_name(part.name), part.type, part.slot.initial) for part in self.parts]

    @property
    def kept(self) -> list[Slot]:
        """Every column that a window begins with."""
        if isinstance(self.plan.window, Remembering):
            return remembered(self.plan.window, self.fields)
        if isinstance(self.plan.window, PairWindow):
            return pair_slots(self.plan.window, self.fields)
        if isinstance(self.plan.window, Relayed):
            return []
        if isinstance(self.plan.window, OrderWindow):
            types = {field.name: field.type for field in (*self.key, *self.fields)}
            return [*order_slots(self.plan.window, types), *(part.slot for part in self.parts)]
        sessions = OF_SESSIONS if self.merges else ()
        slots = [*BOOKKEEPING, *sessions, *self.machine.slots(), *(part.slot for part in self.parts)]
        return [*slots, *self.shown] if self.retracts else slots

    @property
    def element_columns(self) -> list[str]:
        """What is known of an element of an order window, held or just come."""
        return [
            *(part.name for part in self.parts),
            "records",
            "came",
            "matched",
            "window_start",
            "window_end",
        ]

    @property
    def state_columns(self) -> pa.Schema:
        """What the state keeps of a window, beside the columns that every state has."""
        return pa.schema([*self.key, *BOUNDS, *(pa.field(slot.name, slot.type) for slot in self.kept)])

    @property
    def pane_columns(self) -> pa.Schema:
        """The schema of panes: key, values, and what every pane has."""
        replaced = REPLACED_BY if self.merges and not self.retracts else ()
        number = (NUMBER,) if self.numbered else ()
        return pa.schema([*self.key, *self.results, *PANE, *replaced, *number])

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """The conditions that its trigger looks for; a partial counts the matches of the i-th as `matches_i`."""
        return punctuations(self.plan.trigger)

    @property
    def partial_columns(self) -> pa.Schema:
        """What Spark sends: key, bounds, elements, and every part of every aggregate.

        For order windows it sends the records themselves: their key, time, offset, and the fields that matter.
        """
        if self.in_order:
            matched = () if punctuation(self.plan.window) is None else (MATCHED,)
            return pa.schema([*self.key, *ELEMENT, *matched, *self.fields])
        matches = [pa.field(f"matches_{i}", pa.int64()) for i, _ in enumerate(self.predicates)]
        parts = [pa.field(part.name, part.type) for part in self.parts]
        piece = PIECE if self.merges else ()
        news = (NEWS,) if self.changes else ()
        elements = pa.field("elements", pa.int64())
        return pa.schema([*self.key, *BOUNDS, *piece, elements, *news, *matches, *parts])


def ready_stage(stage: Stage, types: Mapping[str, pa.DataType], *, changes: bool = False) -> ReadyStage:
    """Make a stage ready over input fields of these types; `changes` are read from other stages."""
    refuse_unknown(stage, types)
    several = len(stage.inputs) > 1
    apart = one_sided(stage.aggregates)
    types = {
        **types,
        **{each.name: pa.bool_() if each.field is None else types[each.field] for each in apart},
    }
    computed = (
        accumulator(unrestricted(output), types, changes=changes, several=several and not changes)
        for output in stage.aggregates
    )
    for name in stage.key:
        single = not pa.types.is_nested(types[name])
        require(single, "key", f"{name!r} of {stage.name} is {types[name]}", OF_ONE_VALUE)
    said = computed if not isinstance(stage.window, Remembering | Relayed) else returned(stage.window)
    return ReadyStage(
        stage,
        machine(stage.trigger),
        tuple(said),
        tuple(pa.field(name, types[name]) for name in stage.key),
        element_fields(stage, types) if in_order(stage.window) else (),
        changes,
        apart,
    )


def refuse_unknown(stage: Stage, types: Mapping[str, pa.DataType]) -> None:
    """Raise DefinitionError for a field that a stage uses and does not find after its steps."""
    for input_ in stage.inputs:
        for place, name in used_fields(stage, input_):
            if name not in types:
                steps = [*stage.steps_of(input_), *stage.steps]
                last = f" after its step {type(steps[-1]).__name__}" if steps else ""
                has = ", ".join(sorted(each for each in types if not each.startswith("_")))
                raise DefinitionError(
                    place, f"{name!r} is no column of {input_}{last}, for {stage.name}", f"There are: {has}"
                )


def shown_name(part: str) -> str:
    """The state column that remembers what a part held at the last pane."""
    return f"shown_{part}"
