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
from tests.pipelines.engine.aggregates.typed_elements import (
    ALL_AGGREGATES,
    FIELDS,
    WindowElement,
    compute_rows,
    element_fields,
    store_and_read,
)

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
def window_elements_of(draw: st.DrawFn, aggregate: Aggregate) -> list[WindowElement]:
    """Elements of several windows and batches, from two sources with two partitions each."""
    window_elements = []
    offsets: dict[tuple[str, int], int] = {}
    batch = 0
    for content in draw(st.lists(element_fields(*aggregate.used_fields), max_size=12)):
        source, partition = draw(st.sampled_from(SOURCES)), draw(st.integers(0, 1))
        offset = offsets.get((source, partition), 0)
        offsets[source, partition] = offset + 1
        batch += draw(st.integers(0, 1))
        element = StageElement((), draw(st.integers(0, 4)), (source, partition, offset), content)
        window_elements.append(WindowElement(draw(st.integers(0, WINDOWS - 1)), batch, element))
    return window_elements


def expected_value(aggregate: Aggregate, elements: Sequence[StageElement]) -> Any:
    """The reference's value in the engine's types: a mean or quantile of decimals is a float."""
    value = canonicalize(compute_aggregate(aggregate, elements))
    if isinstance(aggregate, Mean) and isinstance(value, Decimal):
        return float(value)
    if isinstance(aggregate, Quantiles):
        return tuple(float(part) if isinstance(part, Decimal) else part for part in value)
    return value


def read_pane_values(accumulator: Accumulator, rows: Any) -> list[Any]:
    """Pane values after a round trip through Arrow."""
    column = pa.array(accumulator.pane_values(rows), accumulator.type, from_pandas=False)
    return [canonicalize(value) for value in column.to_pylist()]


@settings(max_examples=scale_examples(60), deadline=None)
@given(aggregate=st.sampled_from(ALL_AGGREGATES), data=st.data())
def test_partials_of_batches_merge_to_the_whole(aggregate: Aggregate, data: st.DataObject) -> None:
    input_elements = data.draw(window_elements_of(aggregate))
    accumulator = aggregate.build_accumulator(AggregateContext("out", TYPES, has_several_inputs=True))
    rows = new_rows([part.state_column for part in accumulator.parts], WINDOWS)
    for batch in sorted({element.batch for element in input_elements}):
        batch_elements = [element for element in input_elements if element.batch == batch]
        groups = data.draw(st.permutations(range(2 * WINDOWS)))
        # Two partials for each window, in some order, as from two partitions.
        groups_of_elements = [
            groups[2 * element.window + element.element.address[1]] for element in batch_elements
        ]
        partials = compute_rows(
            accumulator, [element.element for element in batch_elements], groups_of_elements, 2 * WINDOWS
        )
        windows = np.array([groups.index(group) // 2 for group in range(2 * WINDOWS)])
        rows_before = [rows[part.name].copy() for part in accumulator.parts]
        values_before = [[repr(item) for item in column] for column in rows_before]
        merge_partials(accumulator.parts, rows, windows, store_and_read(accumulator, partials))
        assert [[repr(item) for item in column] for column in rows_before] == values_before, (
            "the rows of an earlier pane were changed in place"
        )
        rows = store_and_read(accumulator, rows)
    elements = [[a.element for a in input_elements if a.window == window] for window in range(WINDOWS)]
    assert read_pane_values(accumulator, rows) == [expected_value(aggregate, chunk) for chunk in elements]


@settings(max_examples=scale_examples(60), deadline=None)
@given(aggregate=st.sampled_from(ALL_AGGREGATES), data=st.data(), order=st.permutations(range(WINDOWS)))
def test_merged_windows_equal_one_window_of_all_elements(
    aggregate: Aggregate, data: st.DataObject, order: Sequence[int]
) -> None:
    input_elements = data.draw(window_elements_of(aggregate))
    accumulator = aggregate.build_accumulator(AggregateContext("out", TYPES, has_several_inputs=True))
    rows = compute_rows(
        accumulator, [a.element for a in input_elements], [a.window for a in input_elements], WINDOWS
    )
    merged = new_rows([part.state_column for part in accumulator.parts], 1)
    merge_partials(accumulator.parts, merged, np.zeros(WINDOWS, np.int64), rows.where(np.array(order)))
    assert read_pane_values(accumulator, merged) == [
        expected_value(aggregate, [a.element for a in input_elements])
    ]


@settings(max_examples=scale_examples(60), deadline=None)
@given(aggregate=st.sampled_from(ALL_AGGREGATES), data=st.data())
def test_retracted_elements_leave_no_trace(aggregate: Aggregate, data: st.DataObject) -> None:
    """Changes have no address: elements of one time are ordered by their values."""
    input_elements = data.draw(window_elements_of(aggregate))
    accumulator = aggregate.build_accumulator(AggregateContext("out", TYPES, over_changes=True))
    retracted = data.draw(
        st.lists(st.sampled_from(input_elements), unique_by=id) if input_elements else st.just([])
    )
    changes = [*((a, 1) for a in input_elements), *((a, -1) for a in retracted)]
    changes = data.draw(st.permutations(changes))
    rows = new_rows([part.state_column for part in accumulator.parts], WINDOWS)
    for start in range(0, len(changes), 4):
        chunk = changes[start : start + 4]
        partials = compute_rows(
            accumulator,
            [a.element for a, _ in chunk],
            range(len(chunk)),
            len(chunk),
            [weight for _, weight in chunk],
        )
        merge_partials(accumulator.parts, rows, np.array([a.window for a, _ in chunk], np.int64), partials)
        rows = store_and_read(accumulator, rows)
    remaining = [a for a in input_elements if not any(a is other for other in retracted)]
    fresh_rows = compute_rows(
        accumulator, [a.element for a in remaining], [a.window for a in remaining], WINDOWS
    )
    assert read_pane_values(accumulator, rows) == read_pane_values(accumulator, fresh_rows)
    if not depends_on_address(aggregate):
        elements = [[a.element for a in remaining if a.window == window] for window in range(WINDOWS)]
        assert read_pane_values(accumulator, rows) == [expected_value(aggregate, chunk) for chunk in elements]


def depends_on_address(aggregate: Aggregate) -> bool:
    return hasattr(aggregate, "order") or hasattr(aggregate, "largest")


@pytest.mark.parametrize("changes", [False, True])
def test_a_window_without_elements_equals_the_reference(changes: bool) -> None:
    for aggregate in ALL_AGGREGATES:
        accumulator = aggregate.build_accumulator(AggregateContext("out", TYPES, over_changes=changes))
        assert read_pane_values(accumulator, compute_rows(accumulator, [], [], 1)) == [
            expected_value(aggregate, [])
        ], aggregate
