"""A record on which user code fails is quarantined; tables match DuckDB without it."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import (
    TEN_SECONDS,
    build_plan,
    expect_windows,
    list_windows,
    make_readings,
    query_duckdb,
    sum_accounts,
)

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.custom import Custom
from penstock.engine.aggregates.sum import Sum
from penstock.engine.definition.user_functions import combiner_ref, function_ref
from penstock.engine.errors import PoisonLimitError, SumOverflowError
from penstock.engine.host.error_report import describe_user_traceback
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Plan
from penstock.engine.plan.steps import ApplyStep, RowFunctionStep, SqlStep
from penstock.infra.local_broker import LocalBroker
from penstock.stream import fixed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
POISON = 13.25
"""A temperature that no other reading has."""


def fail_on_poison(frame: "DataFrame") -> "DataFrame":
    from pyspark.sql.functions import udf

    def raise_on_poison(temperature):  # with annotations, Spark would infer another kind of UDF
        if temperature == 13.25:
            raise ValueError("no such temperature")
        return temperature

    return frame.withColumn("temperature", udf(raise_on_poison, "double")("temperature"))


def divide_row(row: dict[str, Any]) -> dict[str, Any]:
    return {"device": row["device"], "temperature": divide(row["temperature"])}


def divide(temperature: float) -> float:
    return temperature / 0


FAILING_SQL = f"""
    SELECT * EXCEPT (temperature),
           CASE WHEN temperature = {POISON} THEN 1 / (temperature - {POISON}) ELSE temperature END AS temperature
    FROM input
"""


class FailingCombiner:
    """A combiner that counts, and fails on the poison record in `add` or in `result`."""

    partial_type = pa.float64()
    result_type = pa.float64()
    can_subtract = False

    def __init__(self, where: str) -> None:
        self.where = where

    def add(self, list_windows: pa.Table, groups: np.ndarray, count: int) -> pa.Array:
        temperatures = list_windows.column(0)
        poisoned = pc.any(pc.equal(temperatures, POISON)).as_py()
        if poisoned and self.where == "add":
            raise ArithmeticError("cannot add it")
        sums = np.zeros(count)
        np.add.at(sums, groups, 1)
        if poisoned:
            sums[:] = np.nan
        return pa.array(sums)

    def merge(self, partials: pa.Array, groups: np.ndarray, count: int) -> pa.Array:
        sums = np.zeros(count)
        np.add.at(sums, groups, np.asarray(partials.fill_null(0)))
        return pa.array(sums)

    def subtract(self, partials: pa.Array, removed: pa.Array) -> pa.Array:
        raise NotImplementedError

    def result(self, partials: pa.Array) -> pa.Array:
        if np.isnan(np.asarray(partials.fill_null(0))).any():
            raise ArithmeticError("cannot show it")
        return partials


def with_steps(*steps: Any) -> "Any":
    return lambda plan: replace(plan, stages=(replace(plan.only_stage, steps=steps),))


def with_combiner(where: str) -> "Any":
    def change(plan: Plan) -> Plan:
        more = AggregateOutput("own", Custom(("temperature",), combiner_ref(FailingCombiner(where))))
        return replace(
            plan, stages=(replace(plan.only_stage, aggregates=(*plan.only_stage.aggregates, more)),)
        )

    return change


@dataclass
class PoisonTolerantRunner(StreamRunner):
    """A stream that may quarantine one poison record."""

    poison_limit: int = 1


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    name = f"poisoned{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_steps(ApplyStep(function_ref(fail_on_poison))), "ValueError: no such temperature"),
        (with_steps(SqlStep(FAILING_SQL)), "DIVIDE_BY_ZERO"),
        (with_combiner("add"), "ArithmeticError: cannot add it"),
        (with_combiner("result"), "ArithmeticError: cannot show it"),
    ],
    ids=["udf", "sql", "combiner's add", "combiner's result"],
)
def test_a_poison_record_is_quarantined_with_its_address(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path, change: Any, message: str
) -> None:
    runner = PoisonTolerantRunner(change(build_plan(topic, fixed("10 seconds"))), spark, broker, tmp_path)
    valid, poison = make_readings(300, seed=1), {"device": "d1", "at": 5_000, "temperature": POISON}
    send(broker, topic, valid[:150])
    send(broker, topic, [*valid[150:170], poison, *valid[170:]], partition=1)
    runner.run_until_read(301)
    assert list_windows(runner.table(f"latest/{runner.plan.name}")) == expect_windows(
        valid, TEN_SECONDS, 10_000
    )
    assert sum_accounts(runner, "read", "accepted", "quarantined") == [(301, 300, 1)]
    ((partition, offset, reason),) = query_duckdb(
        'SELECT partition, "offset", reason FROM q', q=runner.table(f"quarantine/{topic}")
    )
    assert (partition, offset) == (1, 20)
    assert message in reason
    assert reason.startswith("user_code_error: ")


def test_more_poison_records_than_the_limit_stop_the_stream(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    plan = with_steps(ApplyStep(function_ref(fail_on_poison)))(build_plan(topic, fixed("10 seconds")))
    runner = PoisonTolerantRunner(plan, spark, broker, tmp_path)
    poison = {"device": "d1", "at": 5_000, "temperature": POISON}
    send(broker, topic, [*make_readings(20, seed=2), poison, poison])
    with pytest.raises(Exception, match=r"User code fails on more than 1 record\. Fix") as raised:
        runner.run_until_read(22)
    assert runner.progress.outcomes == []
    assert re.match(
        r"raise_on_poison \(\S*test_poison_records.py:\d+\): ValueError: no such", str(raised.value)
    )
    assert "test_poison_records.py" in describe_user_traceback(raised.value)


def test_the_traceback_of_a_failing_row_function_has_the_frames_of_user_code(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    step = RowFunctionStep(
        function_ref(divide_row), (Column("device", "STRING"), Column("temperature", "DOUBLE"))
    )
    runner = PoisonTolerantRunner(
        with_steps(step)(build_plan(topic, fixed("10 seconds"))), spark, broker, tmp_path
    )
    send(broker, topic, make_readings(5, seed=2))
    with pytest.raises(
        PoisonLimitError, match=r"^map divide_row \(.*ZeroDivisionError: .*, at poisoned\w+/0 "
    ) as raised:
        runner.run_until_read(5)
    frames = [line for line in describe_user_traceback(raised.value).splitlines() if ", in " in line]
    assert [line.rpartition(" ")[2] for line in frames] == ["divide_row", "divide"]


def test_a_sum_overflow_stops_only_its_stream(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    plan = build_plan(topic, fixed("10 seconds"))
    overflowing = with_steps(SqlStep(f"SELECT *, {2**62}L AS great FROM input"))(plan)
    overflowing_sum = AggregateOutput("greatest", Sum("great"))
    overflowing = replace(
        overflowing,
        name="great",
        stages=(
            replace(overflowing.only_stage, aggregates=(*overflowing.only_stage.aggregates, overflowing_sum)),
        ),
    )
    valid = [{"device": "d1", "at": at, "temperature": 1.5} for at in (1_000, 2_000, 3_000, 21_000)]
    send(broker, topic, valid)
    failing, other = (
        PoisonTolerantRunner(each, spark, broker, tmp_path / each.name) for each in (overflowing, plan)
    )
    with pytest.raises(SumOverflowError, match="greatest of a window exceeds what its column"):
        failing.run_until_read(4)
    assert failing.progress.outcomes == []
    other.run_until_read(4)
    assert list_windows(other.table(f"latest/{plan.name}")) == expect_windows(valid, TEN_SECONDS, 10_000)
