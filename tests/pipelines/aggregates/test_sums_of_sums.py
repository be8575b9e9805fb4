"""A sum keeps the kind of what it sums, stage after stage: whole numbers stay whole, decimals exact."""

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
from tests.pipelines.fold.partials import partials
from tests.pipelines.fold.running import Running

from penstock.pipelines.fold.aggregates import accumulator, lifted, merge_into
from penstock.pipelines.fold.aggregates.exactly import terms, total
from penstock.pipelines.fold.graph import ready_graph
from penstock.pipelines.fold.rows import fresh
from penstock.pipelines.model import after_count, fixed, mean, repeatedly, sum_
from penstock.pipelines.plan import (
    Aggregate,
    Column,
    Output,
    PaneLog,
    Plan,
    SameWindows,
    Source,
    Stage,
    Sum,
    Topic,
    check,
)
from penstock.pipelines.reference import Batch, Evaluator, Record
from penstock.pipelines.reference.numbers import exact_sum
from penstock.pipelines.state.columns import BEFORE_ALL

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
        Stage(f"s{number}", (reads,), window, (Output("total", sum_(of)),), key=key, sinks=(PaneLog(f"s{number}"),),
              **others)  # type: ignore[arg-type]
        for number, (reads, window, of, key) in enumerate([
            ("records", fixed(10), "value", ("key",)), ("s0", SameWindows(), "total", ("key",)),
            ("s1", fixed(20), "total", ()),
        ])
    ]  # fmt: skip
    return check(Plan("sums", (Source("records", Topic("records"), columns, "at"),), tuple(stages)))


@pytest.mark.parametrize("name", VALUES)
def test_a_sum_of_sums_is_exact_and_of_their_kind(tmp_path: Path, name: str) -> None:
    kind, values, last = VALUES[name]
    fields = pa.schema([("key", pa.string()), ("at", pa.int64()), ("value", kind)])
    plan = chain("DECIMAL(10,2)" if pa.types.is_decimal(kind) else "BIGINT")
    graph = ready_graph(plan, {"s0": {field.name: field.type for field in fields}})
    running = Running(graph, tmp_path)
    evaluator, told, expected = Evaluator(plan), [], []
    for number, value in enumerate(values):
        record = Record("records", 0, number, {"key": "ab"[number % 2], "at": number * 4, "value": value})
        came = {"s0": partials(graph.first, [record], fields, "at", number)}
        folded, _ = running.run(came, number, BEFORE_ALL)
        told += folded["s2"].panes.select(["total", "kind"]).to_pylist()
        panes = evaluator.run(Batch(number, number, (record,), watermark=0)).later["s2"]
        expected += [{**dict(pane.values), "kind": pane.kind} for pane in panes]
    assert told == expected
    assert told[-1] == {"total": sum(values), "kind": "insert"}
    assert [stage.results[0].type for stage in graph.stages][-1] == last


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
def test_a_great_value_that_is_taken_back_leaves_the_small_ones_as_they_were(of: Aggregate) -> None:
    each = accumulator(Output("out", of), {"value": pa.float64()}, changes=True)
    rows, stood = fresh([part.slot for part in each.parts], 1), list[float]()
    for values in GLITCHES:
        changes = [*((value, -1) for value in stood), *((value, 1) for value in values)]
        fields, weights = zip(*changes, strict=True)
        came = lifted(each.parts, pa.table({"value": pa.array(fields, pa.float64()), "_weight": weights}))
        merge_into(each.parts, rows, np.zeros(len(changes), np.int64), came)
        whole, stood = sum(map(Fraction, values)), values
        expected = inf if whole > sys.float_info.max else float(whole)
        assert each.values(rows).tolist() == [expected if isinstance(of, Sum) else expected / len(values)]


finite = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([GREATEST, -GREATEST, 5e-324])


@given(values=st.lists(finite, max_size=8), data=st.data())
def test_terms_are_those_of_the_exact_sum_however_it_came_about(
    values: list[float], data: st.DataObject
) -> None:
    held: Sequence[float] = ()
    for value in data.draw(st.permutations(values)):
        held = terms([*held, value])
    assert sum(map(Fraction, held)) == sum(map(Fraction, values))
    assert total(held) == exact_sum([*values, 0.0])
    for value in values:
        held = terms([*held, -value])
    assert held == ()
