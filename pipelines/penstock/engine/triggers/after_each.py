"""The trigger that runs several triggers one after the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import Rows, StateColumn
from penstock.engine.definition.argument_checks import require
from penstock.engine.definition.keyword import keyword
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array
from penstock.engine.triggers.machine import (
    NewElementCounts,
    TriggerColumnNames,
    TriggerMachine,
    WindowMerge,
)
from penstock.engine.triggers.trigger import Trigger, require_triggers


@dataclass(frozen=True)
class AfterEach(Trigger):
    """Runs one trigger after the other. Only the current trigger sees elements."""

    triggers: tuple[Trigger, ...]

    def __post_init__(self) -> None:
        require_triggers(self.triggers, "trigger.after_each")

    @override
    def refuse_unreachable_parts(self) -> None:
        is_last_reached = all(part.can_finish for part in self.triggers[:-1])
        fix = "Only the last trigger of after_each may never finish"
        require(is_last_reached, "trigger.after_each", "a trigger before the last one never finishes", fix)
        super().refuse_unreachable_parts()

    @override
    def describe(self) -> str:
        return "first " + "; then ".join(part.describe() for part in self.triggers)

    @override
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        name = column_names.next_name("active_part")
        return SequenceMachine(name, [part.create_machine(column_names) for part in self.triggers])

    @property
    @override
    def parts(self) -> tuple[Trigger, ...]:
        return self.triggers

    @property
    @override
    def can_finish(self) -> bool:
        return all(part.can_finish for part in self.triggers)

    @property
    @override
    def can_fire_before_end(self) -> bool:
        return self.triggers[0].can_fire_before_end


@keyword("after_each", synonyms=("afterinorder", "inorder", "sequence"))
def after_each(*of: Trigger) -> AfterEach:
    """Run one trigger after the other, each until it finishes.

    Args:
        of: the triggers. Only the last one may never finish.

    Example:
        trigger(after_each(after_count(1), repeatedly(after_count(100))))
    """
    return AfterEach(of)


@dataclass(frozen=True)
class SequenceMachine(TriggerMachine):
    """Only the active part sees elements; when it finishes, the next one starts."""

    name: str
    parts: Sequence[TriggerMachine]

    @override
    def state_columns(self) -> Iterator[StateColumn]:
        yield StateColumn(self.name, pa.int32(), 0)
        for part in self.parts:
            yield from part.state_columns()

    @override
    def on_elements(self, rows: Rows, new_elements: NewElementCounts, batch_time: BatchTime) -> None:
        for position, part in enumerate(self.parts):
            part.on_elements(rows, new_elements.for_windows(rows[self.name] == position), batch_time)

    @override
    def should_fire(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return np.asarray(
            self._select_active(rows, [part.should_fire(rows, batch_time) for part in self.parts], False)
        )

    @override
    def fires_at_end(self, rows: Rows, batch_time: BatchTime) -> BoolArray:
        return np.asarray(
            self._select_active(rows, [part.fires_at_end(rows, batch_time) for part in self.parts], False)
        )

    @override
    def next_timer(self, rows: Rows, batch_time: BatchTime) -> Int64Array:
        return np.asarray(
            self._select_active(
                rows, [part.next_timer(rows, batch_time) for part in self.parts], MAX_TIMESTAMP_MS
            )
        )

    @override
    def on_fire(self, rows: Rows, window_mask: BoolArray, batch_time: BatchTime) -> BoolArray:
        turn = rows[self.name].copy()
        for position, part in enumerate(self.parts):
            finished = part.on_fire(rows, window_mask & (turn == position), batch_time)
            rows[self.name][finished] = position + 1
        return np.asarray(window_mask & (rows[self.name] == len(self.parts)))

    @override
    def on_merge(self, rows: Rows, window_merge: WindowMerge) -> None:
        turn = window_merge.sources[self.name]
        lowest_turn = np.full(len(rows), len(self.parts), turn.dtype)
        np.minimum.at(lowest_turn, window_merge.target_rows, turn)
        merged_rows = np.unique(window_merge.target_rows)
        rows[self.name][merged_rows] = lowest_turn[merged_rows]
        for position, part in enumerate(self.parts):
            part.on_merge(
                rows,
                window_merge.for_sources(
                    (turn == position) & (lowest_turn[window_merge.target_rows] == position)
                ),
            )

    def _select_active(self, rows: Rows, part_values: Sequence[Any], default: Any) -> Any:
        active = rows[self.name]
        return np.select([active == position for position in range(len(part_values))], part_values, default)
