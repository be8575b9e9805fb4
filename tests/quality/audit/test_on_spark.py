"""The whole audit, over a real topic, archive, ledger and tables: each damage is found, and nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from tests.quality.audit.stream import MINUTE, NOON, Lived, states

from penstock.infra.local_broker import LocalBroker
from penstock.quality.audit.comparable import Sample
from penstock.quality.audit.verdict import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
LATEST, RAW = "latest/minutes", "raw/audited"


@pytest.fixture(scope="module")
def lived(spark: "SparkSession", broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    one = Lived(spark, broker, "audited", tmp_path_factory.mktemp("audited") / "stream")
    one.live(6_000)
    return one


@pytest.fixture(scope="module")
def report(lived: Lived) -> Report:
    return lived.audit()


def test_everything_is_proved_of_a_stream_that_is_right(lived: Lived, report: Report) -> None:
    assert states(report) == dict.fromkeys(CHECKS, "right"), report.verdicts
    assert report.first is None
    said = {verdict.check: verdict.said for verdict in report.verdicts}
    late = lived.scope(lived.folder).late.num_rows
    assert late > 0
    assert f"6,004 read = {6_001 - late:,} folded + {late} late + 3 quarantined" in said["accounts"]
    assert said["delivery audited"].startswith("6,000 records that 1 producers know of are there")
    assert said["archive audited"].startswith("6,004 offsets")


CHECKS = (
    *("files", "ranges", "accounts", "witnesses", "set", "panes"),
    *("quarantine", "delivery", "archive", "reading", "results"),
)


@pytest.mark.parametrize("sample", [Sample(keys=0.3), Sample(start=NOON, end=NOON + 2 * MINUTE)])
def test_a_sample_proves_what_it_takes(lived: Lived, report: Report, sample: Sample) -> None:
    results = lived.audit(sample=sample).verdicts[-1]
    assert results.state == "right", results
    taken, of = (int(one.said.split()[0].replace(",", "")) for one in (results, report.verdicts[-1]))
    assert 0 < taken < of


def edit_a_value(warehouse: Path) -> None:
    DeltaTable(warehouse / LATEST).update(
        {"temperature": "temperature + 0.001"}, predicate="device = 'device-0003'"
    )


def edit_an_old_record(warehouse: Path) -> None:
    DeltaTable(warehouse / RAW).update({"value": "key"}, predicate='partition = 2 AND "offset" = 77')


def lose_the_headers_of_a_record(warehouse: Path) -> None:
    DeltaTable(warehouse / RAW).update({"headers": "NULL"}, predicate="key IS NULL AND value IS NULL")


def lose_an_old_record(warehouse: Path) -> None:
    DeltaTable(warehouse / RAW).delete('partition = 2 AND "offset" = 78')


def lose_a_file_of_results(warehouse: Path) -> None:
    Path(DeltaTable(warehouse / LATEST).file_uris()[0].removeprefix("file://")).unlink()


DAMAGE: list[tuple[Callable[[Path], None], str, str]] = [
    (edit_a_value, "results", "latest/minutes, device device-0003, window_start"),
    (edit_an_old_record, "archive", "audited/2 offset 77: its value is not the same in the topic and in"),
    (lose_the_headers_of_a_record, "archive", "audited/1 offset "),
    (lose_an_old_record, "archive", "raw/audited: partition 2: 1 records are missing, the first at offset 78"),
    (lose_a_file_of_results, "files", "latest/minutes, file "),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "check", "where"), DAMAGE, ids=[damage[0].__name__ for damage in DAMAGE])
def test_damage_is_found_with_its_place(
    lived: Lived, damage: Callable[[Path], None], check: str, where: str
) -> None:
    copied = lived.copy(damage.__name__)
    damage(copied / "warehouse")
    report = lived.audit(copied)
    assert states(report)[check] == "wrong", report.verdicts
    assert report.first is not None
    assert str(report.first).startswith(where)


def test_what_has_expired_is_proved_by_the_archive(lived: Lived) -> None:
    admin = AdminClient({"bootstrap.servers": lived.broker.bootstrap})
    for future in admin.delete_records([TopicPartition("audited", 0, 150)]).values():
        future.result(30)
    assert set(states(lived.audit()).values()) == {"right"}
