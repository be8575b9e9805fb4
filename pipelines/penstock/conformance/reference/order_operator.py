"""Order windows: record by record, nothing is late, and each window emits one pane."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.conformance.reference.aggregates import compute_columns
from penstock.conformance.reference.input_records import RecordAddress, StageElement
from penstock.conformance.reference.order_policies import WindowContents
from penstock.conformance.reference.order_windows import OrderState, create_order_state, event_time_bounds
from penstock.conformance.reference.output_rows import Pane
from penstock.conformance.reference.pane_emission import ReferenceBatchTime
from penstock.conformance.reference.single_rows import build_only_pane
from penstock.engine.plan.stages import Stage
from penstock.engine.windows.order_window import OrderWindow


@dataclass
class ReferenceOrderOperator:
    """The order windows of all keys."""

    stage: Stage
    window: OrderWindow
    key_states: dict[tuple[Any, ...], OrderState] = field(default_factory=dict)
    emitted_counts: dict[tuple[Any, ...], int] = field(default_factory=lambda: defaultdict(int))
    pending_panes: list[Pane] = field(default_factory=list)

    def process_elements(
        self, elements: Sequence[StageElement], batch_time: ReferenceBatchTime
    ) -> set[RecordAddress]:
        """Apply the clock to every key, then add the records in order; all are accepted."""
        for key, state in self.key_states.items():
            self.record_closed_windows(key, state.on_clock(batch_time.clock), batch_time)
        for element in elements:
            state = self.key_states.setdefault(element.key, create_order_state(self.window))
            self.record_closed_windows(element.key, state.add_element(element, batch_time.clock), batch_time)
        return {element.address for element in elements}

    def record_closed_windows(
        self, key: tuple[Any, ...], closed_windows: Iterator[WindowContents], batch_time: ReferenceBatchTime
    ) -> None:
        """Make a pane of each emitted window."""
        for contents in closed_windows:
            self.pending_panes.append(self.build_pane(key, contents, batch_time))
            self.emitted_counts[key] += 1

    def build_pane(
        self, key: tuple[Any, ...], contents: WindowContents, batch_time: ReferenceBatchTime
    ) -> Pane:
        """Return the only pane of a window."""
        values = compute_columns(self.stage.aggregates, contents)
        return build_only_pane(
            key,
            event_time_bounds(contents),
            values,
            batch_time,
            records=len(contents),
            window_number=self.emitted_counts[key],
        )

    def emit_panes(self, batch_time: ReferenceBatchTime) -> Iterator[Pane]:
        """Yield the panes of the batch with the current watermark."""
        pending_panes, self.pending_panes = self.pending_panes, []
        yield from (replace(pane, watermark=batch_time.stream_watermark) for pane in pending_panes)

    def take_late_rows(self) -> list[Any]:
        """Return nothing: no record is late for an order window."""
        return []
