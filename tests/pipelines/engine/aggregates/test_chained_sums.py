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
from tests.pipelines.engine.operators.duckdb_partials import partials
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

GREAT = 2**62
VALUES: dict[str, tuple[pa.DataType, Sequence[Any], pa.DataType]] = {
    "whole numbers": (pa.int64(), [GREAT + 1, -3, GREAT - 7], pa.int64()),
    "small whole numbers": (pa.int16(), [32_767, 32_767, -1], pa.int64()),
    "decimals": (
        pa.decimal128(10, 2),
        [Decimal("0.10"), Decimal("0.20"), Decimal("99999999.99")],
        pa.decimal128(38, 2),
    ),
}


def chain(kind: str) -> Plan:
    """Sums by key, their sums, and the sum of these."""
    columns = (Column("key", "STRING"), Column("at", "BIGINT"), Column("value", kind))
    others = {"trigger": repeatedly(after_count(1)), "accumulation": "retracting"}
    stages = [
        Stage(f"s{number}", (reads,), window, (AggregateOutput("total", sum_(of)),), key=key,
              sinks=(PaneLog(f"s{number}"),), **others)  # type: ignore[arg-type]
        for number, (reads, window, of, key) in enumerate([
            ("records", fixed(10), "value", ("key",)), ("s0", SameWindows(), "total", ("key",)),
            ("s1", fixed(20), "total", ()),
        ])
    ]  # fmt: skip
    return validate_plan(
        Plan("sums", (PlanSource("records", TopicOrigin("records"), columns, "at"),), tuple(stages))
    )


@pytest.mark.parametrize("name", VALUES)
def test_a_sum_of_sums_is_exact_and_keeps_its_type(tmp_path: Path, name: str) -> None:
    kind, values, last = VALUES[name]
    fields = pa.schema([("key", pa.string()), ("at", pa.int64()), ("value", kind)])
    plan = chain("DECIMAL(10,2)" if pa.types.is_decimal(kind) else "BIGINT")
    graph = compile_graph(plan, {"s0": {field.name: field.type for field in fields}})
    running = GraphRunner(graph, tmp_path)
    evaluator, told, expected = Evaluator(plan), [], []
    for number, value in enumerate(values):
        record = InputRecord(
            "records", 0, number, {"key": "ab"[number % 2], "at": number * 4, "value": value}
        )
        came = {"s0": partials(graph.first_record_stage, [record], fields, "at", number)}
        accepted, _ = running.run(came, number, MIN_TIMESTAMP_MS)
        told += accepted["s2"].panes.select(["total", "kind"]).to_pylist()
        panes = evaluator.run(InputBatch(number, number, (record,), watermark=0)).stage_panes["s2"]
        expected += [{**dict(pane.values), "kind": pane.kind} for pane in panes]
    assert told == expected
    assert told[-1] == {"total": sum(values), "kind": "insert"}
    assert [stage.result_fields[0].type for stage in graph.stages][-1] == last


GREATEST = 1.7e308
GLITCHES = [
    [1.5],
    [1.5, 1e17],
    [1.5, 2.0],
    [GREATEST, 2.0],
    [GREATEST, GREATEST],
    [0.1, GREATEST],
    [0.1, 0.2],
]


@pytest.mark.parametrize("of", [sum_("value"), mean("value")], ids=["sum", "mean"])
def test_retracting_a_large_value_leaves_small_ones_exact(of: Aggregate) -> None:
    each = of.build_accumulator(AggregateContext("out", {"value": pa.float64()}, over_changes=True))
    rows, stood = new_rows([part.state_column for part in each.parts], 1), list[float]()
    for values in GLITCHES:
        changes = [*((value, -1) for value in stood), *((value, 1) for value in values)]
        fields, weights = zip(*changes, strict=True)
        came = lift_elements(
            each.parts, pa.table({"value": pa.array(fields, pa.float64()), "_weight": weights})
        )
        merge_partials(each.parts, rows, np.zeros(len(changes), np.int64), came)
        whole, stood = sum(map(Fraction, values)), values
        expected = inf if whole > sys.float_info.max else float(whole)
        assert each.pane_values(rows).tolist() == [
            expected if isinstance(of, Sum) else expected / len(values)
        ]


finite = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([GREATEST, -GREATEST, 5e-324])


@given(values=st.lists(finite, max_size=8), data=st.data())
def test_terms_depend_only_on_the_exact_sum(values: list[float], data: st.DataObject) -> None:
    held: Sequence[float] = ()
    for value in data.draw(st.permutations(values)):
        held = split_into_terms([*held, value])
    assert sum(map(Fraction, held)) == sum(map(Fraction, values))
    assert sum_terms(held) == sum_exactly([*values, 0.0])
    for value in values:
        held = split_into_terms([*held, -value])
    assert held == ()
