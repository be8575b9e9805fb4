"""Records at the limits of a contract are counted or quarantined."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import build_plan, query_duckdb, sum_accounts

from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Plan
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.window import Window
from penstock.infra.local_broker import LocalBroker
from penstock.stream import fixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

YEAR_1, YEAR_9999 = -62_135_596_800_000, 253_402_300_799_999
LONG_KEY = "k" * 990_000  # close to the maximum record size of a broker
VALID: list[dict[str, Any]] = [
    {"device": LONG_KEY, "at": 5, "temperature": 1.0},
    {"device": LONG_KEY, "at": 6, "temperature": 2.0},
    {"device": None, "at": 5, "temperature": 4.0},
    {"at": 7, "temperature": 8.0},
    {"device": "", "at": 5, "temperature": None},
    {"device": "first", "at": YEAR_1, "temperature": 1.5},
    {"device": "last", "at": YEAR_9999, "temperature": 2.5},
    {"device": "before", "at": -1, "temperature": -0.0},
]
INVALID: list[dict[str, Any]] = [
    {"device": "a", "at": None, "temperature": 1.0},
    {"device": "a", "temperature": 1.0},
]


def build_lenient_plan(topic: str, window: Window) -> Plan:
    """Build a plan whose contract requires no field."""
    plan = build_plan(topic, window)
    columns = (Column("device", "STRING"), Column("at", "BIGINT"), Column("temperature", "DOUBLE"))
    return replace(plan, sources=(replace(plan.sources[0], columns=columns),))


@pytest.mark.parametrize("window", [fixed("10 seconds"), Sessions(10_000)], ids=["fixed", "sessions"])
def test_edge_case_records_are_counted_in_their_windows(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path, window: Window
) -> None:
    topic = f"odd{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    runner = StreamRunner(build_lenient_plan(topic, window), spark, broker, tmp_path)
    send(broker, topic, [*VALID, *INVALID])
    runner.run_until_read(len(VALID) + len(INVALID))
    found = query_duckdb(
        "SELECT md5(device), epoch_ms(window_start), n, measured, total FROM t ORDER BY ALL",
        t=runner.table(f"latest/{runner.plan.name}"),
    )

    def window_start(at: int) -> int:
        return at if isinstance(window, Sessions) else at - at % 10_000

    expected = [
        ((LONG_KEY, window_start(5)), (2, 2, 3.0)),
        ((None, window_start(5)), (2, 2, 12.0)),
        (("", window_start(5)), (1, 0, None)),
        (("first", window_start(YEAR_1)), (1, 1, 1.5)),
        (("last", window_start(YEAR_9999)), (1, 1, 2.5)),
        (("before", window_start(-1)), (1, 1, 0.0)),
    ]
    hashed = [(query_duckdb(f"SELECT md5({key!r})" if key is not None else "SELECT NULL")[0][0], at, *values)
              for (key, at), values in expected]  # fmt: skip
    assert sorted(found, key=repr) == sorted(hashed, key=repr)
    reasons = runner.table(f"quarantine/{topic}").column("reason").to_pylist()
    assert reasons == ["missing_field:at"] * 2
    assert sum_accounts(runner, "read", "accepted", "quarantined") == [(10, 8, 2)]
