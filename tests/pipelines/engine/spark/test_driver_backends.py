"""A driven pipeline has the same rows on the reference evaluator and on the engine of live streams."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.plan.stages import Plan
from penstock.pipelines import catalog
from penstock.platform.demo.timed_records import build_timed_records
from penstock.stream import count, fixed, from_sql, read, sum_
from penstock.testing import BackendName, PipelineDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# A stateful function, a join over SQL steps, an Arrow step over panes, an order window and merged sessions. Their
# values add up exactly, so no order of addition matters.
PIPELINES = ("card_limits", "click_through", "hashtags", "temperature_rises", "visits")
BATCHES = 4
RECORDS_PER_TOPIC = 100


def iter_sample(plan: Plan) -> Iterator[tuple[int, str, bytes]]:
    demo = catalog.load_demo(plan.name)
    for source in plan.sources:
        for timed in build_timed_records(topic_of(source), demo, len(plan.sources))[:RECORDS_PER_TOPIC]:
            yield timed.sent_at_ms, topic_of(source), msgspec.json.encode(timed.record)


def drive(name: str, backend: BackendName, spark: "SparkSession") -> dict[str, list[str]]:
    """Return every row of each output as sorted text."""
    plan = catalog.load_plan(name)
    sample = sorted(iter_sample(plan))
    first, last = sample[0][0], sample[-1][0]
    step = (last - first) // BATCHES + 1
    with PipelineDriver(name, clock=first, backend=backend, spark=spark) as driver:
        for number in range(BATCHES):
            for sent_at, topic, value in sample:
                if (sent_at - first) // step == number:
                    driver.send(value, topic=topic)
            driver.run_batch(first + (number + 1) * step)
        driver.end_input(first + (BATCHES + 5) * step)
        rows = {stage.name: driver.panes(stage.name) for stage in plan.stages}
        return {"late": sort_rows(driver.late()), **{key: sort_rows(value) for key, value in rows.items()}}


def sort_rows(rows: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.parametrize("name", PIPELINES)
def test_both_backends_have_the_same_rows(name: str, spark: "SparkSession") -> None:
    reference = drive(name, "reference", spark)
    assert sum(map(len, reference.values())) > 0
    assert drive(name, "spark", spark) == reference


STATEMENT = """
CREATE STREAM hot_sites AS
WITH fahrenheit AS (SELECT *, temperature * 2 + 32 AS degrees FROM sensors),
minutes AS (
  SELECT site, device, MAX(degrees) AS hottest, COUNT(DISTINCT id) AS readings
  FROM fahrenheit
  WHERE degrees > 50
  GROUP BY site, device, TUMBLE(INTERVAL '1' MINUTE)
  EMIT AFTER_WATERMARK(EARLY => AFTER_COUNT(1)) LATENESS INTERVAL '1' HOUR RETRACTING
  INTO LOG(minutes)
)
SELECT site, MAX(hottest) AS hottest, SUM(readings) AS readings
FROM minutes
GROUP BY site, HOP(INTERVAL '1' MINUTE, INTERVAL '2' MINUTES)
EMIT REPEATEDLY(AFTER_COUNT(1));
"""


def test_a_pipeline_in_sql_has_the_rows_of_the_reference(spark: "SparkSession", tmp_path: Path) -> None:
    file = tmp_path / "hot_sites.sql"
    file.write_text(STATEMENT, "utf-8")
    rows = []
    for backend in ("reference", "spark"):
        with PipelineDriver(from_sql(file), backend=backend, spark=spark) as driver:  # type: ignore[arg-type]
            for number in range(40):
                reading = {
                    "id": str(number),
                    "device": f"d{number % 3}",
                    "site": f"s{number % 2}",
                    "at": (number * 7_000) % 180_000,
                    "temperature": float(number % 30),
                }
                driver.send(reading)
                if number % 10 == 9:
                    driver.run_batch()
            driver.end_input()
            rows.append({name: sort_rows(driver.panes(name)) for name in ("minutes", "hot_sites")})
    assert all(rows[0].values())
    assert rows[1] == rows[0]


def test_both_backends_look_up_the_rows_of_the_test(spark: "SparkSession") -> None:
    pipeline = (
        read("sensors")
        .lookup("limits", on="device", columns={"limit": "DOUBLE"})
        .filter("temperature > 10")
        .key("site")
        .aggregate(limits=sum_("limit"), n=count())
        .window(fixed("1 minute"))
        .write("limits_by_site")
    )
    rows = []
    for backend in ("reference", "spark"):
        lookups = {"limits": [{"device": "a", "limit": 1.5}, {"device": "b", "limit": 2.0}]}
        with PipelineDriver(pipeline, lookups=lookups, backend=backend, spark=spark) as driver:  # type: ignore[arg-type]
            for number, (device, temperature) in enumerate(
                [("a", 20.0), ("b", 20.0), ("c", 20.0), ("a", 5.0)]
            ):
                reading = {
                    "id": str(number),
                    "device": device,
                    "site": "s",
                    "at": number,
                    "temperature": temperature,
                }
                driver.send(reading)
            driver.end_input()
            rows.append(driver.latest(columns=("site", "limits", "n")))
    assert rows == [[{"site": "s", "limits": 3.5, "n": 3}]] * 2
