"""A record that breaks one's own code, in each place where one's own code runs: compared with DuckDB without it."""

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

from penstock.engine.definition.user_functions import combiner_ref
from penstock.engine.errors import SumOverflowError
from penstock.engine.plan import AggregateOutput, ApplyStep, Custom, Plan, SqlStep, Sum, function_ref
from penstock.infra.local_broker import LocalBroker
from penstock.stream import fixed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
POISON = 13.25
"""A temperature that no other reading has."""


def breaking(frame: "DataFrame") -> "DataFrame":
    from pyspark.sql.functions import udf

    def judge(temperature):  # the types that Python knows would have Spark guess at a kind of function
        if temperature == 13.25:
            raise ValueError("no such temperature")
        return temperature

    return frame.withColumn("temperature", udf(judge, "double")("temperature"))


BY_SQL = f"""
    SELECT * EXCEPT (temperature),
           CASE WHEN temperature = {POISON} THEN 1 / (temperature - {POISON}) ELSE temperature END AS temperature
    FROM input
"""


class Broken:
    """Counts, and breaks where it meets the poison: in the executors, or when results are shown."""

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

    def subtract(self, partials: pa.Array, gone: pa.Array) -> pa.Array:
        raise NotImplementedError

    def result(self, partials: pa.Array) -> pa.Array:
        if np.isnan(np.asarray(partials.fill_null(0))).any():
            raise ArithmeticError("cannot show it")
        return partials


def stepped(*steps: Any) -> "Any":
    return lambda plan: replace(plan, stages=(replace(plan.only_stage, steps=steps),))


def combined(where: str) -> "Any":
    def change(plan: Plan) -> Plan:
        more = AggregateOutput("own", Custom(("temperature",), combiner_ref(Broken(where))))
        return replace(
            plan, stages=(replace(plan.only_stage, aggregates=(*plan.only_stage.aggregates, more)),)
        )

    return change


@dataclass
class Guarded(StreamRunner):
    """A stream that may set one record aside."""

    poison_limit: int = 1


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    name = f"poisoned{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (stepped(ApplyStep(function_ref(breaking))), "ValueError: no such temperature"),
        (stepped(SqlStep(BY_SQL)), "DIVIDE_BY_ZERO"),
        (combined("add"), "add of Broken raised ArithmeticError: cannot add it"),
        (combined("result"), "result of Broken raised ArithmeticError: cannot show it"),
    ],
    ids=["udf", "sql", "combiner's add", "combiner's result"],
)
def test_the_record_is_set_aside_with_its_address_and_all_others_count(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path, change: Any, said: str
) -> None:
    runner = Guarded(change(build_plan(topic, fixed("10 seconds"))), spark, broker, tmp_path)
    good, poison = make_readings(300, seed=1), {"device": "d1", "at": 5_000, "temperature": POISON}
    send(broker, topic, good[:150])
    send(broker, topic, [*good[150:170], poison, *good[170:]], partition=1)
    runner.run_until_read(301)
    assert list_windows(runner.table(f"latest/{runner.plan.name}")) == expect_windows(
        good, TEN_SECONDS, 10_000
    )
    assert sum_accounts(runner, "read", "folded", "quarantined") == [(301, 300, 1)]
    ((partition, offset, reason),) = query_duckdb(
        'SELECT partition, "offset", reason FROM q', q=runner.table(f"quarantine/{topic}")
    )
    assert (partition, offset) == (1, 20)
    assert said in reason
    assert reason.startswith("user_code_error: ")


def test_more_than_may_be_set_aside_stop_the_stream_and_nothing_of_the_batch_is_written(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    plan = stepped(ApplyStep(function_ref(breaking)))(build_plan(topic, fixed("10 seconds")))
    runner = Guarded(plan, spark, broker, tmp_path)
    poison = {"device": "d1", "at": 5_000, "temperature": POISON}
    send(broker, topic, [*make_readings(20, seed=2), poison, poison])
    with pytest.raises(Exception, match=r"user code failed on more than 1 records, the last in batch 0"):
        runner.run_until_read(22)
    assert runner.progress.outcomes == []


def test_a_sum_that_outgrows_its_column_stops_its_stream_with_a_sentence_and_no_other(
    spark: "SparkSession", broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    plan = build_plan(topic, fixed("10 seconds"))
    great = stepped(SqlStep(f"SELECT *, {2**62}L AS great FROM input"))(plan)
    summed = AggregateOutput("greatest", Sum("great"))
    great = replace(
        great,
        name="great",
        stages=(replace(great.only_stage, aggregates=(*great.only_stage.aggregates, summed)),),
    )
    good = [{"device": "d1", "at": at, "temperature": 1.5} for at in (1_000, 2_000, 3_000, 21_000)]
    send(broker, topic, good)
    stopped, other = (Guarded(each, spark, broker, tmp_path / each.name) for each in (great, plan))
    with pytest.raises(SumOverflowError, match="greatest of a window exceeds what its column"):
        stopped.run_until_read(4)
    assert stopped.progress.outcomes == []
    other.run_until_read(4)
    assert list_windows(other.table(f"latest/{plan.name}")) == expect_windows(good, TEN_SECONDS, 10_000)
