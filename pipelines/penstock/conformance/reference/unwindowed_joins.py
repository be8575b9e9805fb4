"""Joins without windows: each record is matched against all buffered records."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

from penstock.conformance.reference.input_records import RecordAddress, StageElement
from penstock.conformance.reference.output_rows import LateRow, Pane
from penstock.conformance.reference.pane_emission import ReferenceBatchTime
from penstock.conformance.reference.predicates import matches_predicate
from penstock.conformance.reference.single_rows import build_late_row, build_only_pane
from penstock.engine.plan.joins import Join
from penstock.engine.plan.stages import Stage
from penstock.engine.windows.as_of import AsOf
from penstock.engine.windows.between import Between
from penstock.engine.windows.join_window import JoinWindow


@dataclass
class BufferedElement:
    """A record that may still match others."""

    element: StageElement
    is_matched: bool = False
    is_new: bool = True


@dataclass
class ReferenceUnwindowedJoin:
    """The buffered records of a join."""

    stage: Stage
    window: JoinWindow
    buffer: list[BufferedElement] = field(default_factory=list)
    late_rows: list[LateRow] = field(default_factory=list)

    @property
    def join(self) -> Join:
        """Return the definition of the join."""
        assert self.stage.join is not None
        return self.stage.join

    def process_elements(
        self, elements: Sequence[StageElement], batch_time: ReferenceBatchTime
    ) -> set[RecordAddress]:
        """Buffer records that are not late."""
        accepted = [
            element
            for element in elements
            if batch_time.watermark_before < element.time + 1 + self.stage.lateness
        ]
        for element in elements:
            if element not in accepted:
                self.late_rows.append(build_late_row(element, batch_time, self.stage.lateness))
        self.buffer += [
            BufferedElement(element) for element in sorted(accepted, key=lambda element: element.address)
        ]
        return {element.address for element in accepted}

    def emit_panes(self, batch_time: ReferenceBatchTime) -> Iterator[Pane]:
        """Emit every row that is final, and drop records that cannot match any more."""
        rows = join_buffered(self.window, self, batch_time)
        yield from (self.build_pane(left, right, batch_time) for left, right in rows)
        for buffered in self.buffer:
            buffered.is_new = False

    def buffered_side(self, name: str) -> list[BufferedElement]:
        """Return the buffered records of one input."""
        return [buffered for buffered in self.buffer if buffered.element.address[0] == name]

    def build_pane(
        self, left: StageElement | None, right: StageElement | None, batch_time: ReferenceBatchTime
    ) -> Pane:
        """Return a row as the only pane of a zero-length window."""
        present = [element for element in (left, right) if element is not None]
        event_time = find_row_time(self.window, [element.time for element in present])
        sides = {self.join.left: left, self.join.right: right if self.join.kind != "semi" else None}
        columns = (
            (column.name, field_or_null(sides[column.input], column.field)) for column in self.join.columns
        )
        bounds = (event_time, event_time + 1)
        return build_only_pane(present[0].key, bounds, columns, batch_time, records=len(present))

    def take_late_rows(self) -> list[LateRow]:
        """Return and clear the late rows of the batch."""
        late_rows, self.late_rows = self.late_rows, []
        return late_rows


ElementPair = tuple[StageElement | None, StageElement | None]


@singledispatch
def join_buffered(
    window: JoinWindow, operator: ReferenceUnwindowedJoin, batch_time: ReferenceBatchTime
) -> Iterator[ElementPair]:
    """Yield the rows that are final, and drop records that cannot match any more."""
    raise TypeError(f"{window} has no reference implementation. Register one with join_buffered")


@singledispatch
def find_row_time(window: JoinWindow, times: Sequence[int]) -> int:
    """Return the time of a row, from the times of its records, the left one first."""
    return times[0]


@find_row_time.register
def find_pair_time(window: Between, times: Sequence[int]) -> int:
    """Return the later time."""
    return max(times)


@join_buffered.register
def join_between(
    window: Between, operator: ReferenceUnwindowedJoin, batch_time: ReferenceBatchTime
) -> Iterator[ElementPair]:
    """Yield new pairs, and unmatched records when they expire."""
    kind = operator.join.kind
    for left in operator.buffered_side(operator.join.left):
        for right in operator.buffered_side(operator.join.right):
            is_near = -window.before <= right.element.time - left.element.time <= window.after
            if is_near and have_same_key(left.element, right.element) and (left.is_new or right.is_new):
                if kind == "semi" and not left.is_matched:
                    yield left.element, None
                left.is_matched = right.is_matched = True
                if kind not in ("semi", "anti"):
                    yield left.element, right.element
    for buffered in list(operator.buffer):
        is_left = buffered.element.address[0] == operator.join.left
        reach_ms = window.after if is_left else window.before
        if batch_time.watermark < buffered.element.time + reach_ms + 1 + operator.stage.lateness:
            continue
        operator.buffer.remove(buffered)
        if is_left and kind in ("left", "full", "anti") and not buffered.is_matched:
            yield buffered.element, None
        if not is_left and kind in ("right", "full") and not buffered.is_matched:
            yield None, buffered.element


@join_buffered.register
def join_as_of(
    window: AsOf, operator: ReferenceUnwindowedJoin, batch_time: ReferenceBatchTime
) -> Iterator[ElementPair]:
    """Yield due records, each with the newest partner that is not later."""
    for left in operator.buffered_side(operator.join.left):
        if batch_time.watermark < left.element.time + 1 + operator.stage.lateness:
            continue
        operator.buffer.remove(left)
        partner = find_as_of_partner(window, operator, left.element)
        if partner is not None and operator.join.kind != "anti":
            yield left.element, partner
        if partner is None and operator.join.kind in ("left", "anti"):
            yield left.element, None


def find_as_of_partner(
    window: AsOf, operator: ReferenceUnwindowedJoin, left: StageElement
) -> StageElement | None:
    """Return the partner of a record; of several at the same time, the last that arrived."""
    partner = None
    for buffered in operator.buffered_side(operator.join.right):
        right = buffered.element
        is_candidate = right.time <= left.time and have_same_key(left, right)
        if is_candidate and (partner is None or right.time >= partner.time):
            partner = right
    end_predicate = window.ends
    if partner is not None and end_predicate is not None and matches_predicate(partner.fields, end_predicate):
        return None
    if partner is None or window.tolerance is None:
        return partner
    return partner if left.time - partner.time <= window.tolerance else None


def have_same_key(left: StageElement, right: StageElement) -> bool:
    """Tell whether two records have the same key; as in SQL, a null matches nothing."""
    return left.key == right.key and None not in left.key


def field_or_null(element: StageElement | None, name: str) -> Any:
    """Return a field of a record, or null if there is no record."""
    return None if element is None else element.fields.get(name)
