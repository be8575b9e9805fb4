"""An aggregate equals the reference, however elements are split into partials and windows merge."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.aggregates.typed_elements import EVERY, FIELDS, Arrival, combined, fields, stored

from penstock.conformance.reference.aggregates import compute_aggregate
from penstock.conformance.reference.input_records import StageElement
from penstock.conformance.reference.number_semantics import canonicalize
from penstock.engine.aggregates import Accumulator, AggregateContext, merge_partials
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.mean import Mean
from penstock.engine.aggregates.quantiles import Quantiles
from penstock.engine.columnar import new_rows

TYPES = {field.name: field.type for field in FIELDS}
WINDOWS = 3
SOURCES = ("left", "right")


@st.composite
def arrivals(draw: st.DrawFn, of: Aggregate) -> list[Arrival]:
    """Elements of several windows and batches, from two sources with two partitions each."""
    found = []
    offsets: dict[tuple[str, int], int] = {}
    batch = 0
    for content in draw(st.lists(fields(*of.used_fields), max_size=12)):
        source, partition = draw(st.sampled_from(SOURCES)), draw(st.integers(0, 1))
        offset = offsets.get((source, partition), 0)
        offsets[source, partition] = offset + 1
        batch += draw(st.integers(0, 1))
        element = StageElement((), draw(st.integers(0, 4)), (source, partition, offset), content)
        found.append(Arrival(draw(st.integers(0, WINDOWS - 1)), batch, element))
    return found


def expected(of: Aggregate, elements: Sequence[StageElement]) -> Any:
    """The reference's value in the engine's types: a mean or quantile of decimals is a float."""
    found = canonicalize(compute_aggregate(of, elements))
    if isinstance(of, Mean) and isinstance(found, Decimal):
        return float(found)
    if isinstance(of, Quantiles):
        return tuple(float(each) if isinstance(each, Decimal) else each for each in found)
    return found


def said(each: Accumulator, rows: Any) -> list[Any]:
    """Pane values after a round trip through Arrow."""
    column = pa.array(each.pane_values(rows), each.type, from_pandas=False)
    return [canonicalize(found) for found in column.to_pylist()]


@settings(max_examples=scale_examples(60), deadline=None)
@given(of=st.sampled_from(EVERY), data=st.data())
def test_partials_of_batches_merge_to_the_whole(of: Aggregate, data: st.DataObject) -> None:
    came = data.draw(arrivals(of))
    each = of.build_accumulator(AggregateContext("out", TYPES, has_several_inputs=True))
    rows = new_rows([part.state_column for part in each.parts], WINDOWS)
    for batch in sorted({arrival.batch for arrival in came}):
        now = [arrival for arrival in came if arrival.batch == batch]
        groups = data.draw(st.permutations(range(2 * WINDOWS)))
        # Two partials for each window, in some order, as from two partitions.
        place = [groups[2 * arrival.window + arrival.element.address[1]] for arrival in now]
        partials = combined(each, [arrival.element for arrival in now], place, 2 * WINDOWS)
        windows = np.array([groups.index(group) // 2 for group in range(2 * WINDOWS)])
        before = [rows[part.name].copy() for part in each.parts]
        held = [[repr(item) for item in column] for column in before]
        merge_partials(each.parts, rows, windows, stored(each, partials))
        assert [[repr(item) for item in column] for column in before] == held, (
            "what was shown was changed in place"
        )
        rows = stored(each, rows)
    elements = [[a.element for a in came if a.window == window] for window in range(WINDOWS)]
    assert said(each, rows) == [expected(of, some) for some in elements]


@settings(max_examples=scale_examples(60), deadline=None)
@given(of=st.sampled_from(EVERY), data=st.data(), order=st.permutations(range(WINDOWS)))
def test_merged_windows_equal_one_window_of_all_elements(
    of: Aggregate, data: st.DataObject, order: Sequence[int]
) -> None:
    came = data.draw(arrivals(of))
    each = of.build_accumulator(AggregateContext("out", TYPES, has_several_inputs=True))
    rows = combined(each, [a.element for a in came], [a.window for a in came], WINDOWS)
    merged = new_rows([part.state_column for part in each.parts], 1)
    merge_partials(each.parts, merged, np.zeros(WINDOWS, np.int64), rows.where(np.array(order)))
    assert said(each, merged) == [expected(of, [a.element for a in came])]


@settings(max_examples=scale_examples(60), deadline=None)
@given(of=st.sampled_from(EVERY), data=st.data())
def test_retracted_elements_leave_no_trace(of: Aggregate, data: st.DataObject) -> None:
    """Changes have no address: elements of one time are ordered by their values."""
    came = data.draw(arrivals(of))
    each = of.build_accumulator(AggregateContext("out", TYPES, over_changes=True))
    gone = data.draw(st.lists(st.sampled_from(came), unique_by=id) if came else st.just([]))
    changes = [*((a, 1) for a in came), *((a, -1) for a in gone)]
    changes = data.draw(st.permutations(changes))
    rows = new_rows([part.state_column for part in each.parts], WINDOWS)
    for begin in range(0, len(changes), 4):
        some = changes[begin : begin + 4]
        partials = combined(
            each, [a.element for a, _ in some], range(len(some)), len(some), [weight for _, weight in some]
        )
        merge_partials(each.parts, rows, np.array([a.window for a, _ in some], np.int64), partials)
        rows = stored(each, rows)
    left = [a for a in came if not any(a is other for other in gone)]
    fresh_rows = combined(each, [a.element for a in left], [a.window for a in left], WINDOWS)
    assert said(each, rows) == said(each, fresh_rows)
    if not depends_on_address(of):
        elements = [[a.element for a in left if a.window == window] for window in range(WINDOWS)]
        assert said(each, rows) == [expected(of, some) for some in elements]


def depends_on_address(of: Aggregate) -> bool:
    return hasattr(of, "order") or hasattr(of, "largest")


@pytest.mark.parametrize("changes", [False, True])
def test_a_window_without_elements_equals_the_reference(changes: bool) -> None:
    for of in EVERY:
        each = of.build_accumulator(AggregateContext("out", TYPES, over_changes=changes))
        assert said(each, combined(each, [], [], 1)) == [expected(of, [])], of
