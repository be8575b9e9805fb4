"""Rows of erased keys are not compared; all others are."""

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.quality.audit.audited_stream import MINUTE, AuditedStream

from penstock.engine.batch.erasure_account import digest_key
from penstock.engine.erasure.key_erasure import ErasureRequest, ErasureTarget, erase_key_state
from penstock.infra.local_broker import LocalBroker
from penstock.quality.audit.erased_keys import exclude_erased_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def erased_key(fields: tuple[str, ...], *texts: str) -> tuple[tuple[str, ...], str]:
    return fields, digest_key("minutes", dict(zip(fields, texts, strict=True)))


ROWS = pa.table(
    {
        "device": ["a", "b", None, "a"],
        "size": pa.array([1.0, 2.5, 7.0, 7.0]),
        "odd": [True, False, None, True],
        "number": [1, 2, 3, 4],
    }
)


@pytest.mark.parametrize(
    ("erased_keys", "remaining"),
    [
        ([], [1, 2, 3, 4]),
        ([erased_key(("device",), "a")], [2, 3]),
        ([erased_key(("device",), "None")], [1, 2, 3, 4]),
        ([erased_key(("size",), "7"), erased_key(("size",), "2.5")], [1]),
        ([erased_key(("size",), "7.0")], [1, 2]),
        ([erased_key(("odd",), "false")], [1, 3, 4]),
        ([erased_key(("device", "size"), "a", "7"), erased_key(("device",), "b")], [1, 3]),
    ],
)
def test_rows_of_an_erased_key_are_excluded_by_its_digest(erased_keys: list, remaining: list[int]) -> None:
    rows = exclude_erased_rows(ROWS, "minutes", erased_keys)
    assert sorted(rows.column("number").to_pylist()) == remaining
    assert exclude_erased_rows(ROWS.slice(0, 0), "minutes", erased_keys).num_rows == 0


@pytest.mark.spark
@pytest.mark.kafka
def test_an_erased_key_is_excluded_and_damage_to_other_keys_is_found(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    stream = AuditedStream(spark, broker, f"erased{uuid4().hex[:8]}", tmp_path / "lived")
    stream.run(6_000)
    running = stream._running
    latest = stream.folder / "warehouse" / "latest/minutes"
    devices = DeltaTable(latest).to_pyarrow_table(columns=["device"]).column("device")
    key, other_key = sorted({*devices.to_pylist()})[:2]
    target = ErasureTarget("minutes", stream.folder / "stream", stream.folder / "warehouse")
    outcome, account = erase_key_state(
        target, running.plan, ErasureRequest({"device": key}, "a person", stream.clock), 2
    )
    assert account.total_windows > 0
    running.progress.outcomes.append(outcome)
    stream.feed(6_600)
    stream.clock += 5 * MINUTE
    stream.feed(9_000)
    stream.resume(9_004)
    report = stream.audit()
    assert {verdict.check: verdict.summary for verdict in report.verdicts if verdict.state != "passed"} == {}
    DeltaTable(latest).update({"readings": "readings + 1"}, predicate=f"device = '{other_key}'")
    results = next(verdict for verdict in stream.audit().verdicts if verdict.check == "results")
    assert (results.state, f"device {other_key}" in results.summary) == ("failed", True)
