"""A sum keeps the kind of what it sums, stage after stage: whole numbers stay whole, decimals exact."""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pipelines.fold.partials import partials
from tests.pipelines.fold.running import Running

from penstock.pipelines.fold.graph import ready_graph
from penstock.pipelines.model import after_count, fixed, repeatedly, sum_
from penstock.pipelines.plan import Column, Output, PaneLog, Plan, SameWindows, Source, Stage, Topic, check
from penstock.pipelines.reference import Batch, Evaluator, Record
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
