"""The whole audit, over a real topic, archive, ledger and tables: each damage is found, and nothing else."""

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
from tests.quality.audit.stream import MINUTE, NOON, Lived, states

from penstock.engine.archive.archive_names import ledger_path
from penstock.infra.local_broker import LocalBroker
from penstock.platform.cli.main import main
from penstock.platform.control import open_control_store
from penstock.platform.services import audit as platform_audit
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.record_checks import check_delivery
from penstock.quality.audit.runner import run_audit
from penstock.quality.audit.topic_view import TopicView
from penstock.quality.audit.verdict import AuditReport

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
def report(lived: Lived) -> AuditReport:
    return lived.audit()


def test_everything_is_proved_of_a_stream_that_is_right(lived: Lived, report: AuditReport) -> None:
    assert states(report) == dict.fromkeys(CHECKS, "passed"), report.verdicts
    assert report.first_difference is None
    said = {verdict.check: verdict.summary for verdict in report.verdicts}
    late = lived.scope(lived.folder).late_rows.num_rows
    assert late > 0
    assert f"6,004 read = {6_001 - late:,} folded + {late} late + 3 quarantined" in said["accounts"]
    assert said["delivery audited"].startswith("6,000 records of 1 producers are in the topic")
    assert said["archive audited"].startswith("6,004 offsets")


CHECKS = (
    *("files", "offset ranges", "accounts", "agreement", "late and quarantined", "panes"),
    *("quarantine", "delivery", "archive", "reading", "results"),
)


@pytest.mark.parametrize("sample", [Sample(key_share=0.3), Sample(start=NOON, end=NOON + 2 * MINUTE)])
def test_a_sample_proves_what_it_takes(lived: Lived, report: AuditReport, sample: Sample) -> None:
    results = lived.audit(sample=sample).verdicts[-1]
    assert results.state == "passed", results
    taken, of = (int(one.summary.split()[0].replace(",", "")) for one in (results, report.verdicts[-1]))
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


def edit_a_quarantined_record(warehouse: Path) -> None:
    DeltaTable(warehouse / "quarantine/audited").update({"value": "key"}, predicate="reason = 'malformed'")


def lose_a_file_of_results(warehouse: Path) -> None:
    Path(DeltaTable(warehouse / LATEST).file_uris()[0].removeprefix("file://")).unlink()


DAMAGE: list[tuple[Callable[[Path], None], str, str]] = [
    (edit_a_value, "results", "latest/minutes, device device-0003, window_start"),
    (edit_an_old_record, "archive", "audited/2 offset 77: its value differs between the topic and"),
    (lose_the_headers_of_a_record, "archive", "audited/1 offset "),
    (lose_an_old_record, "archive", "raw/audited: partition 2: 1 records are missing, the first at offset 78"),
    (edit_a_quarantined_record, "reading", "quarantined of audited/1 offset "),
    (lose_a_file_of_results, "files", "latest/minutes, file "),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "check", "where"), DAMAGE, ids=[damage[0].__name__ for damage in DAMAGE])
def test_damage_is_found_with_its_place(
    lived: Lived, damage: Callable[[Path], None], check: str, where: str
) -> None:
    copied = lived.copy(damage.__name__)
    damage(copied / "warehouse")
    report = lived.audit(copied)
    assert states(report)[check] == "failed", report.verdicts
    assert report.first_difference is not None
    assert str(report.first_difference).startswith(where)


@pytest.fixture
def home(lived: Lived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which the stream has lived, of a catalog that has it."""
    scope, home = lived.scope(lived.folder), tmp_path / "home"
    for part, place in (
        ("warehouse", "warehouse"),
        ("stream", "streams/minutes"),
        ("producer", "producers/feed"),
    ):
        shutil.copytree(lived.folder / part, home / place)
    store = open_control_store(f"sqlite:///{home}/control.db")
    for batch in scope.batches:
        store.record_batch(batch)
    store.close()
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", lived.broker.bootstrap)
    monkeypatch.setattr(platform_audit, "check_pipeline_exists", lambda _name: None)
    monkeypatch.setattr(platform_audit, "load_plan", {"minutes": scope.plan}.__getitem__)
    monkeypatch.setattr(platform_audit, "open_command_spark", lambda *_: nullcontext(lived.session))
    return home


@pytest.mark.parametrize("edited", [False, True], ids=["whole", "edited"])
def test_the_command_ends_with_one_and_names_the_row_of_a_result_that_was_edited(
    home: Path, edited: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if edited:
        edit_a_value(home / "warehouse")
    monkeypatch.setattr("sys.argv", ["penstock", "audit", "minutes", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = {one["check"]: one for one in json.loads(capsys.readouterr().out)["verdicts"]}
    assert ended.value.code == (1 if edited else 0)
    assert {check for check, one in told.items() if one["state"] == "failed"} == (
        {"results"} if edited else set()
    )
    assert told["results"]["state"] == ("failed" if edited else "passed")
    assert ("device device-0003, window_start" in told["results"]["summary"]) is edited


def test_an_acknowledged_record_that_the_topic_lost_is_found(lived: Lived, tmp_path: Path) -> None:
    """A topic is made anew, as one is whose brokers lost their disks, and less is sent than was acknowledged."""
    sent = Lived(lived.session, lived.broker, "lost", tmp_path / "stream")
    for topic in ("lost", sent.contract.dead_letter_topic):
        lived.broker.create_topic(topic, 1)
    sent.feed(60)
    admin = AdminClient({"bootstrap.servers": lived.broker.bootstrap})
    admin.delete_topics(["lost"])["lost"].result(30)
    made_anew(lived.broker, "lost")
    assert said_of_delivery(lived, sent) == "lost/0 offset 0: acknowledged, but the topic ends at 0"
    producer = Producer({"bootstrap.servers": lived.broker.bootstrap, "transactional.id": "lost"})
    producer.init_transactions(30)
    for _ in range(3):
        producer.begin_transaction()
        producer.produce("lost", b"another")
        producer.commit_transaction(30)
    assert said_of_delivery(lived, sent) == (
        "lost/0 offset 6: acknowledged, but the topic ends at 6; "
        "lost/0 offset 1: acknowledged, but the topic has no record there"
    )


def made_anew(broker: LocalBroker, topic: str) -> None:
    """Make a topic whose deletion was asked for: the broker refuses it until that is done."""
    for _ in range(1_000):
        try:
            broker.create_topic(topic, 1)
        except KafkaException:
            continue
        return
    raise AssertionError(f"{topic} is not gone")


def said_of_delivery(lived: Lived, sent: Lived) -> str:
    scope = dataclasses.replace(
        lived.scope(lived.folder), producer_ledgers={"feed": sent.folder / "producer"}
    )
    return "; ".join(map(str, check_delivery(TopicView(scope, sent.topic)).differences))


def test_nothing_is_proved_of_a_topic_that_nobody_knows_to_have_sent_to(lived: Lived) -> None:
    scope = dataclasses.replace(lived.scope(lived.folder), producer_ledgers={})
    assert check_delivery(TopicView(scope, lived.topic)).state == "unproven"


def lose_a_file_of_the_archives_ledger(warehouse: Path) -> None:
    Path(DeltaTable(warehouse / ledger_path("audited")).file_uris()[0].removeprefix("file://")).unlink()


def lose_the_archive(warehouse: Path) -> None:
    shutil.rmtree(warehouse / RAW)


@pytest.mark.parametrize("damage", [lose_a_file_of_the_archives_ledger, lose_the_archive])
def test_an_archive_that_is_damaged_is_named_and_the_topic_proves_the_rest(
    lived: Lived, damage: Callable[[Path], None]
) -> None:
    copied = lived.copy(damage.__name__)
    damage(copied / "warehouse")
    found = dataclasses.replace(lived.scope(copied), archived_topics=["audited"])
    states_of = states(run_audit(found, Sample(key_share=0.3)))
    assert {check: state for check, state in states_of.items() if state != "passed"} == {
        "files": "failed",
        "archive": "failed",
    }


def test_an_archive_that_was_put_back_to_an_older_state_is_found_while_the_topic_has_its_records(
    lived: Lived,
) -> None:
    copied = lived.copy("put back")
    for table in (RAW, ledger_path("audited")):
        DeltaTable(copied / "warehouse" / table).delete()
    journals = {"audited": lived.folder / "archive" / "journal"}
    report = run_audit(
        dataclasses.replace(lived.scope(copied), archive_journals=journals), Sample(key_share=0.3)
    )
    assert {check for check, state in states(report).items() if state != "passed"} == {"archive"}
    assert str(report.first_difference).startswith(
        f"{ledger_path('audited')}: it has no batch, but its journal has batch "
    )
    whole = dataclasses.replace(lived.scope(lived.folder), archive_journals=journals)
    assert states(run_audit(whole, Sample(key_share=0.3)))["archive"] == "passed"


def test_what_has_expired_is_proved_by_the_archive(lived: Lived) -> None:
    admin = AdminClient({"bootstrap.servers": lived.broker.bootstrap})
    for future in admin.delete_records([TopicPartition("audited", 0, 150)]).values():
        future.result(30)
    assert set(states(lived.audit()).values()) == {"passed"}
