"""The whole audit, with a real topic, archive, ledger and tables."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from tests.patience import PATIENCE_S
from tests.quality.audit.audited_stream import MINUTE, NOON, AuditedStream, find_states

from penstock.engine.archive.archive_names import ledger_path
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.ledger import DeliveryLedger
from penstock.platform.cli.main import main
from penstock.platform.control import open_control_store
from penstock.platform.services import audit as platform_audit
from penstock.quality.audit.checks.delivery_check import check_delivery
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.runner import run_audit
from penstock.quality.audit.topic_view import TopicView
from penstock.quality.audit.verdict import AuditReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
LATEST, RAW = "latest/minutes", "raw/audited"


@pytest.fixture(scope="module")
def audited_stream(
    spark: "SparkSession", broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> AuditedStream:
    stream = AuditedStream(spark, broker, "audited", tmp_path_factory.mktemp("audited") / "stream")
    stream.run(6_000)
    return stream


@pytest.fixture(scope="module")
def report(audited_stream: AuditedStream) -> AuditReport:
    return audited_stream.audit()


def test_every_check_of_an_undamaged_stream_passes(
    audited_stream: AuditedStream, report: AuditReport
) -> None:
    assert find_states(report) == dict.fromkeys(CHECK_NAMES, "passed"), report.verdicts
    assert report.first_difference is None
    summaries = {verdict.check: verdict.summary for verdict in report.verdicts}
    late = audited_stream.scope(audited_stream.folder).late_rows.num_rows
    assert late > 0
    assert f"6,004 read = {6_001 - late:,} accepted + {late} late + 3 quarantined" in summaries["accounts"]
    assert summaries["delivery audited"].startswith("6,000 records of 1 producers are in the topic")
    assert summaries["archive audited"].startswith("6,004 offsets")


CHECK_NAMES = (
    *("files", "writers", "offset ranges", "accounts", "agreement", "late and quarantined", "panes"),
    *("quarantine", "delivery", "archive", "reading", "results"),
)


@pytest.mark.parametrize("sample", [Sample(key_share=0.3), Sample(start=NOON, end=NOON + 2 * MINUTE)])
def test_a_sample_checks_a_part_of_the_results(
    audited_stream: AuditedStream, report: AuditReport, sample: Sample
) -> None:
    results = audited_stream.audit(sample=sample).verdicts[-1]
    assert results.state == "passed", results
    sampled, total = (
        int(verdict.summary.split()[0].replace(",", "")) for verdict in (results, report.verdicts[-1])
    )
    assert 0 < sampled < total


def edit_result(warehouse: Path) -> None:
    DeltaTable(warehouse / LATEST).update(
        {"temperature": "temperature + 0.001"}, predicate="device = 'device-0003'"
    )


def edit_archived_record(warehouse: Path) -> None:
    DeltaTable(warehouse / RAW).update({"value": "key"}, predicate='partition = 2 AND "offset" = 77')


def drop_record_headers(warehouse: Path) -> None:
    DeltaTable(warehouse / RAW).update({"headers": "NULL"}, predicate="key IS NULL AND value IS NULL")


def delete_archived_record(warehouse: Path) -> None:
    DeltaTable(warehouse / RAW).delete('partition = 2 AND "offset" = 78')


def edit_quarantined_record(warehouse: Path) -> None:
    DeltaTable(warehouse / "quarantine/audited").update({"value": "key"}, predicate="reason = 'malformed'")


def delete_result_file(warehouse: Path) -> None:
    Path(DeltaTable(warehouse / LATEST).file_uris()[0].removeprefix("file://")).unlink()


DAMAGE: list[tuple[Callable[[Path], None], str, str]] = [
    (edit_result, "results", "latest/minutes, device device-0003, window_start"),
    (edit_archived_record, "archive", "audited/2 offset 77: its value differs between the topic and"),
    (drop_record_headers, "archive", "audited/1 offset "),
    (delete_archived_record, "archive", "raw/audited: partition 2: 1 records are missing, the first at offset 78"),
    (edit_quarantined_record, "reading", "quarantined of audited/1 offset "),
    (delete_result_file, "files", "latest/minutes, file "),
]  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "check", "location"), DAMAGE, ids=[damage[0].__name__ for damage in DAMAGE]
)
def test_damage_is_found_with_its_location(
    audited_stream: AuditedStream, damage: Callable[[Path], None], check: str, location: str
) -> None:
    copy = audited_stream.copy(damage.__name__)
    damage(copy / "warehouse")
    report = audited_stream.audit(copy)
    assert find_states(report)[check] == "failed", report.verdicts
    assert report.first_difference is not None
    assert str(report.first_difference).startswith(location)


@pytest.fixture
def home(audited_stream: AuditedStream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with a copy of the stream, and a catalog that lists it."""
    scope, home = audited_stream.scope(audited_stream.folder), tmp_path / "home"
    for part, target in (
        ("warehouse", "warehouse"),
        ("stream", "streams/minutes"),
        ("producer", "producers/feed"),
    ):
        shutil.copytree(audited_stream.folder / part, home / target)
    store = open_control_store(f"sqlite:///{home}/control.db")
    for batch in scope.batches:
        store.record_batch(batch)
    store.close()
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", audited_stream.broker.bootstrap)
    monkeypatch.setattr(platform_audit, "check_pipeline_exists", lambda _name: None)
    monkeypatch.setattr(platform_audit, "load_plan", {"minutes": scope.plan}.__getitem__)
    monkeypatch.setattr(platform_audit, "open_command_spark", lambda *_: nullcontext(audited_stream.session))
    return home


@pytest.mark.parametrize("edited", [False, True], ids=["whole", "edited"])
def test_the_command_exits_with_1_and_names_an_edited_result(
    home: Path, edited: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if edited:
        edit_result(home / "warehouse")
    monkeypatch.setattr("sys.argv", ["penstock", "audit", "minutes", "--json"])
    with pytest.raises(SystemExit) as exited:
        main()
    verdicts = {verdict["check"]: verdict for verdict in json.loads(capsys.readouterr().out)["verdicts"]}
    assert exited.value.code == (1 if edited else 0)
    assert {check for check, verdict in verdicts.items() if verdict["state"] == "failed"} == (
        {"results"} if edited else set()
    )
    assert verdicts["results"]["state"] == ("failed" if edited else "passed")
    assert ("device device-0003, window_start" in verdicts["results"]["summary"]) is edited


def test_an_acknowledged_record_missing_from_the_topic_is_found(
    audited_stream: AuditedStream, tmp_path: Path
) -> None:
    """The topic is recreated, as after a loss of all disks, and gets fewer records than were acknowledged."""
    stream = AuditedStream(audited_stream.session, audited_stream.broker, "lost", tmp_path / "stream")
    for topic in ("lost", stream.contract.dead_letter_topic):
        audited_stream.broker.create_topic(topic, 1)
    stream.feed(60)
    admin = AdminClient({"bootstrap.servers": audited_stream.broker.bootstrap})
    admin.delete_topics(["lost"])["lost"].result(PATIENCE_S)
    recreate_topic(audited_stream.broker, "lost")
    assert describe_delivery(audited_stream, stream.folder / "producer") == (
        "lost: 60 records acknowledged to feed were in an earlier topic of this name, which was deleted"
    )
    write_old_ledger(tmp_path / "old")
    assert (
        describe_delivery(audited_stream, tmp_path / "old")
        == "lost/0 offset 0: acknowledged, but the topic ends at 0"
    )
    producer = Producer({"bootstrap.servers": audited_stream.broker.bootstrap, "transactional.id": "lost"})
    producer.init_transactions(30)
    for _ in range(3):
        producer.begin_transaction()
        producer.produce("lost", b"another")
        producer.commit_transaction(30)
    assert describe_delivery(audited_stream, tmp_path / "old") == (
        "lost/0 offset 6: acknowledged, but the topic ends at 6; "
        "lost/0 offset 1: acknowledged, but the topic has no record there"
    )


def recreate_topic(broker: LocalBroker, topic: str) -> None:
    """Create a topic again; the broker refuses that until its deletion is done."""
    for _ in range(1_000):
        try:
            broker.create_topic(topic, 1)
        except KafkaException:
            continue
        return
    raise AssertionError(f"{topic} was not deleted in time")


def write_old_ledger(folder: Path) -> None:
    """Write a ledger of version 0.1.0, which does not know the ids of topics: 60 acknowledged records."""
    ledger = DeliveryLedger(folder, lambda: 0)
    ledger.start_session([("lost", 0), ("lost.dead-letters", 0)], [-1, -1], "test")
    ledger.record_intent(0, 60, None)
    ledger.record_acknowledgements([(0, [0] * 60, {0: [(0, 60)]})])
    ledger.close(clean=True)


def describe_delivery(audited_stream: AuditedStream, ledger: Path) -> str:
    scope = dataclasses.replace(
        audited_stream.scope(audited_stream.folder), producer_ledgers={"feed": ledger}
    )
    return "; ".join(map(str, check_delivery(TopicView(scope, "lost")).differences))


def test_delivery_is_unproven_without_a_producer_ledger(audited_stream: AuditedStream) -> None:
    scope = dataclasses.replace(audited_stream.scope(audited_stream.folder), producer_ledgers={})
    assert check_delivery(TopicView(scope, audited_stream.topic)).state == "unproven"


def delete_archive_ledger_file(warehouse: Path) -> None:
    Path(DeltaTable(warehouse / ledger_path("audited")).file_uris()[0].removeprefix("file://")).unlink()


def delete_archive(warehouse: Path) -> None:
    shutil.rmtree(warehouse / RAW)


@pytest.mark.parametrize("damage", [delete_archive_ledger_file, delete_archive])
def test_a_damaged_archive_is_named_and_the_topic_proves_the_rest(
    audited_stream: AuditedStream, damage: Callable[[Path], None]
) -> None:
    copy = audited_stream.copy(damage.__name__)
    damage(copy / "warehouse")
    scope = dataclasses.replace(audited_stream.scope(copy), archived_topics=["audited"])
    state_by_check = find_states(run_audit(scope, Sample(key_share=0.3)))
    assert {check: state for check, state in state_by_check.items() if state != "passed"} == {
        "files": "failed",
        "archive": "failed",
    }


def test_an_archive_older_than_its_journal_is_found(
    audited_stream: AuditedStream,
) -> None:
    copy = audited_stream.copy("put back")
    for table in (RAW, ledger_path("audited")):
        DeltaTable(copy / "warehouse" / table).delete()
    journals = {"audited": audited_stream.folder / "archive" / "journal"}
    report = run_audit(
        dataclasses.replace(audited_stream.scope(copy), archive_journals=journals), Sample(key_share=0.3)
    )
    assert {check for check, state in find_states(report).items() if state != "passed"} == {"archive"}
    assert str(report.first_difference).startswith(
        f"{ledger_path('audited')}: it has no batch, but its journal has batch "
    )
    whole = dataclasses.replace(audited_stream.scope(audited_stream.folder), archive_journals=journals)
    assert find_states(run_audit(whole, Sample(key_share=0.3)))["archive"] == "passed"


def test_expired_records_are_proved_by_the_archive(audited_stream: AuditedStream) -> None:
    admin = AdminClient({"bootstrap.servers": audited_stream.broker.bootstrap})
    for future in admin.delete_records([TopicPartition("audited", 0, 150)]).values():
        future.result(PATIENCE_S)
    assert set(find_states(audited_stream.audit()).values()) == {"passed"}
