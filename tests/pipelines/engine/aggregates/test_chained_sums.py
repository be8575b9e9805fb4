"""A sum keeps the type of its field through all stages: integers stay integers, decimals stay exact."""

import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.engine.operators.duckdb_partials import compute_partials
from tests.pipelines.engine.operators.graph_runner import GraphRunner

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.conformance.reference.number_semantics import sum_exactly
from penstock.engine.aggregates import AggregateContext, lift_elements, merge_partials
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.exact_sums import split_into_terms, sum_terms
from penstock.engine.aggregates.sum import Sum
from penstock.engine.columnar import new_rows
from penstock.engine.operators.stage_graph import compile_graph
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS
from penstock.engine.windows.same_windows import SameWindows
from penstock.stream import after_count, fixed, mean, repeatedly, sum_

LARGE = 2**62
FIELD_VALUES: dict[str, tuple[pa.DataType, Sequence[Any], pa.DataType]] = {
    "whole numbers": (pa.int64(), [LARGE + 1, -3, LARGE - 7], pa.int64()),
    "small whole numbers": (pa.int16(), [32_767, 32_767, -1], pa.int64()),
    "decimals": (
        pa.decimal128(10, 2),
        [Decimal("0.10"), Decimal("0.20"), Decimal("99999999.99")],
        pa.decimal128(38, 2),
    ),
}


def make_plan(column_type: str) -> Plan:
    """Sums by key, their sums, and the sum of these."""
    columns = (Column("key", "STRING"), Column("at", "BIGINT"), Column("value", column_type))
    options = {"trigger": repeatedly(after_count(1)), "accumulation": "retracting"}
    stages = [
        Stage(f"s{number}", (input_name,), window, (AggregateOutput("total", sum_(field)),), key=key,
              sinks=(PaneLog(f"s{number}"),), **options)  # type: ignore[arg-type]
        for number, (input_name, window, field, key) in enumerate([
            ("records", fixed(10), "value", ("key",)), ("s0", SameWindows(), "total", ("key",)),
            ("s1", fixed(20), "total", ()),
        ])
    ]  # fmt: skip
    return validate_plan(
        Plan("sums", (PlanSource("records", TopicOrigin("records"), columns, "at"),), tuple(stages))
    )


@pytest.mark.parametrize("name", FIELD_VALUES)
def test_a_sum_of_sums_is_exact_and_keeps_its_type(tmp_path: Path, name: str) -> None:
    column_type, values, result_type = FIELD_VALUES[name]
    fields = pa.schema([("key", pa.string()), ("at", pa.int64()), ("value", column_type)])
    plan = make_plan("DECIMAL(10,2)" if pa.types.is_decimal(column_type) else "BIGINT")
    graph = compile_graph(plan, {"s0": {field.name: field.type for field in fields}})
    runner = GraphRunner(graph, tmp_path)
    evaluator, emitted, expected = Evaluator(plan), [], []
    for number, value in enumerate(values):
        record = InputRecord(
            "records", 0, number, {"key": "ab"[number % 2], "at": number * 4, "value": value}
        )
        inputs = {"s0": compute_partials(graph.first_record_stage, [record], fields, "at", number)}
        results, _ = runner.run(inputs, number, MIN_TIMESTAMP_MS)
        emitted += results["s2"].panes.select(["total", "kind"]).to_pylist()
        panes = evaluator.run(InputBatch(number, number, (record,), watermark=0)).stage_panes["s2"]
        expected += [{**dict(pane.values), "kind": pane.kind} for pane in panes]
    assert emitted == expected
    assert emitted[-1] == {"total": sum(values), "kind": "insert"}
    assert [stage.result_fields[0].type for stage in graph.stages][-1] == result_type


LARGEST_FLOAT = 1.7e308
SUCCESSIVE_VALUES = [
    [1.5],
    [1.5, 1e17],
    [1.5, 2.0],
    [LARGEST_FLOAT, 2.0],
    [LARGEST_FLOAT, LARGEST_FLOAT],
    [0.1, LARGEST_FLOAT],
    [0.1, 0.2],
]


@pytest.mark.parametrize("aggregate", [sum_("value"), mean("value")], ids=["sum", "mean"])
def test_retracting_a_large_value_leaves_small_ones_exact(aggregate: Aggregate) -> None:
    accumulator = aggregate.build_accumulator(
        AggregateContext("out", {"value": pa.float64()}, over_changes=True)
    )
    rows, values_before = new_rows([part.state_column for part in accumulator.parts], 1), list[float]()
    for values in SUCCESSIVE_VALUES:
        changes = [*((value, -1) for value in values_before), *((value, 1) for value in values)]
        fields, weights = zip(*changes, strict=True)
        partials = lift_elements(
            accumulator.parts, pa.table({"value": pa.array(fields, pa.float64()), "_weight": weights})
        )
        merge_partials(accumulator.parts, rows, np.zeros(len(changes), np.int64), partials)
        exact_sum, values_before = sum(map(Fraction, values)), values
        expected = inf if exact_sum > sys.float_info.max else float(exact_sum)
        assert accumulator.pane_values(rows).tolist() == [
            expected if isinstance(aggregate, Sum) else expected / len(values)
        ]


finite_floats = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [LARGEST_FLOAT, -LARGEST_FLOAT, 5e-324]
)


@given(values=st.lists(finite_floats, max_size=8), data=st.data())
def test_terms_depend_only_on_the_exact_sum(values: list[float], data: st.DataObject) -> None:
    terms: Sequence[float] = ()
    for value in data.draw(st.permutations(values)):
        terms = split_into_terms([*terms, value])
    assert sum(map(Fraction, terms)) == sum(map(Fraction, values))
    assert sum_terms(terms) == sum_exactly([*values, 0.0])
    for value in values:
        terms = split_into_terms([*terms, -value])
    assert terms == ()
