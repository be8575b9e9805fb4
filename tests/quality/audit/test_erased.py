"""Keys that were erased on request: no row of theirs is compared, and every other row is."""

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.quality.audit.stream import MINUTE, Lived

from penstock.engine.batch.erasure_account import digest_key
from penstock.engine.erasure.key_erasure import ErasureRequest, ErasureTarget, erase_key_state
from penstock.infra.local_broker import LocalBroker
from penstock.quality.audit.erased_keys import exclude_erased_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def erased(fields: tuple[str, ...], *texts: str) -> tuple[tuple[str, ...], str]:
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
    ("gone", "left"),
    [
        ([], [1, 2, 3, 4]),
        ([erased(("device",), "a")], [2, 3]),
        ([erased(("device",), "None")], [1, 2, 3, 4]),
        ([erased(("size",), "7"), erased(("size",), "2.5")], [1]),
        ([erased(("size",), "7.0")], [1, 2]),
        ([erased(("odd",), "false")], [1, 3, 4]),
        ([erased(("device", "size"), "a", "7"), erased(("device",), "b")], [1, 3]),
    ],
)
def test_rows_of_a_key_are_left_out_by_its_digest(gone: list, left: list[int]) -> None:
    found = exclude_erased_rows(ROWS, "minutes", gone)
    assert sorted(found.column("number").to_pylist()) == left
    assert exclude_erased_rows(ROWS.slice(0, 0), "minutes", gone).num_rows == 0


@pytest.mark.spark
@pytest.mark.kafka
def test_a_stream_that_forgot_a_key_is_right_and_what_is_wrong_with_other_keys_is_found(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    lived = Lived(spark, broker, f"erased{uuid4().hex[:8]}", tmp_path / "lived")
    lived.live(6_000)
    running = lived._running
    latest = lived.folder / "warehouse" / "latest/minutes"
    found = DeltaTable(latest).to_pyarrow_table(columns=["device"]).column("device")
    key, other = sorted({*found.to_pylist()})[:2]
    place = ErasureTarget("minutes", lived.folder / "stream", lived.folder / "warehouse")
    outcome, account = erase_key_state(
        place, running.plan, ErasureRequest({"device": key}, "a person", lived.clock), 2
    )
    assert account.total_windows > 0
    running.progress.outcomes.append(outcome)
    lived.feed(6_600)
    lived.clock += 5 * MINUTE
    lived.feed(9_000)
    lived.go_on(9_004)
    report = lived.audit()
    assert {one.check: one.summary for one in report.verdicts if one.state != "passed"} == {}
    DeltaTable(latest).update({"readings": "readings + 1"}, predicate=f"device = '{other}'")
    said = next(one for one in lived.audit().verdicts if one.check == "results")
    assert (said.state, f"device {other}" in said.summary) == ("failed", True)
