"""Streams, tables and their owners: dropped and handed over on purpose only, and the journal says by whom."""

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.catalogs import PIPELINE_TEMPLATE, WriteCatalogFile
from tests.platform.cli.conftest import RunCommand

from penstock.core.clock import now_ms
from penstock.engine.batch.stream_claim import make_stream_claim
from penstock.engine.host.control import DesiredRunState
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.table_owner import read_table_owner
from penstock.engine.upgrade.stored_plan import store_plan
from penstock.infra.local_broker import LocalBroker
from penstock.pipelines import catalog
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.services import stream_drop

SCHEMA = pa.schema([pa.field("n", pa.int64())])
OWNED = ("latest/orders", "late/orders", "ledger/orders")


@pytest.fixture
def store(home: Path) -> Iterator[ControlStore]:
    home.mkdir(parents=True)
    with closing(open_control_store(f"sqlite:///{home}/control.db")) as opened:
        yield opened


@pytest.fixture
def file(write: WriteCatalogFile, home: Path, store: ControlStore) -> Path:
    """A pipeline `orders` that has run, and is drained."""
    file = write("orders.py", PIPELINE_TEMPLATE.format(name="orders"))
    store_plan(home / "streams" / "orders", catalog.load_plan("orders"))
    for name in OWNED:
        write_table(home, name, "orders", 3)
    write_table(home, "quarantine/sensors", "orders", 1, is_shared=True)
    store.set_desired_state("orders", DesiredRunState.DRAINED, 0)
    return file


def write_table(home: Path, name: str, stream: str, rows: int, *, is_shared: bool = False) -> None:
    table = LogTable(home / "warehouse" / name, SCHEMA, stream)
    if not is_shared:
        table.claim(make_stream_claim(home / "streams", stream))
    table.commit(0, table.write(pa.table({"n": range(rows)}, schema=SCHEMA), 0, 0), 0)


def list_tables(home: Path) -> set[str]:
    return {f"{log.parent.parent.name}/{log.parent.name}" for log in home.glob("warehouse/*/*/_delta_log")}


def read_actions(run: RunCommand) -> list[tuple[str, str, str]]:
    actions = json.loads(run("actions", "--json").out)
    return [(item["action"], item["target"], item["details"].get("state", "")) for item in actions]


@pytest.mark.parametrize("is_file_removed", [False, True], ids=["with its file", "file removed"])
def test_a_drop_removes_what_it_shows_and_nothing_else(
    run: RunCommand, home: Path, file: Path, store: ControlStore, is_file_removed: bool
) -> None:
    if is_file_removed:
        file.unlink()
    shown = json.loads(run("stream", "drop", "orders", "--dry-run", "--json").out)
    assert {(item["kind"], item["name"], item["rows"]) for item in shown["items"]} == {
        *(("table", name, 3) for name in OWNED),
        ("state", str(home / "streams" / "orders"), None),
        ("records of the control store", "orders", None),
    }
    assert all(
        item["size_bytes"] for item in shown["items"] if item["kind"] != "records of the control store"
    )
    assert list_tables(home) == {*OWNED, "quarantine/sensors"}
    dropped = run("stream", "drop", "orders", "--yes", "orders")
    assert dropped.code == 0, dropped.err
    assert list_tables(home) == {"quarantine/sensors"}
    assert not (home / "streams" / "orders").exists()
    assert not (home / "dropped").exists()
    assert store.read_desired_states() == {}
    assert store.read_lease("orders") is None
    assert read_actions(run) == [("stream drop", "orders", "started"), ("stream drop", "orders", "done")]
    if is_file_removed:
        again = run("stream", "drop", "orders", "--yes", "orders")
        assert (again.code, "there is no stream 'orders'" in again.err) == (2, True)


@pytest.mark.parametrize(
    "answer", [(), ("--yes", "order"), ("--yes", "")], ids=["nothing", "a typo", "empty"]
)
def test_a_drop_is_not_confirmed_by_accident(
    run: RunCommand, home: Path, file: Path, answer: tuple[str, ...]
) -> None:
    refused = run("stream", "drop", "orders", *answer)
    assert refused.code == 2
    assert "nothing was changed" in refused.err
    assert list_tables(home) == {*OWNED, "quarantine/sensors"}
    assert read_actions(run) == []


def test_a_running_stream_is_not_dropped(
    run: RunCommand, home: Path, file: Path, store: ControlStore
) -> None:
    store.acquire_lease("orders", "a host", now_ms(), 60_000)
    dry_run = run("stream", "drop", "orders", "--dry-run")
    assert (dry_run.code, "stream orders is not removed: it runs, or should run" in dry_run.err) == (1, True)
    refused = run("stream", "drop", "orders", "--yes", "orders")
    assert refused.code == 1
    assert "it runs, or should run. Stop it: `penstock stream drain orders`" in refused.err
    assert list_tables(home) == {*OWNED, "quarantine/sensors"}


def test_a_stream_that_another_pipeline_needs_is_not_dropped(
    run: RunCommand, home: Path, file: Path, write: WriteCatalogFile
) -> None:
    write(
        "reader.py",
        """
        from penstock.stream import count, fixed, read

        reader = (
            read("sensors").lookup("latest/orders", on="device", columns={"n": "long"})
            .aggregate(total=count()).window(fixed("1 minute")).write("reader")
        )
        """,
    )
    refused = run("stream", "drop", "orders", "--yes", "orders")
    assert (refused.code, "pipeline reader looks up latest/orders" in refused.err) == (1, True), refused.err
    assert run("stream", "drop", "orders", "--keep-tables", "--yes", "orders").code == 0
    assert list_tables(home) == {*OWNED, "quarantine/sensors"}


def test_an_interrupted_drop_is_finished_by_the_next(
    run: RunCommand, home: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.unlink()
    remove_table, removed = stream_drop.remove_table, []

    def remove_one(path: Path) -> None:
        if removed:
            raise OSError("killed")
        removed.append(path)
        remove_table(path)

    with monkeypatch.context() as patch:
        patch.setattr(stream_drop, "remove_table", remove_one)
        interrupted = run("stream", "drop", "orders", "--yes", "orders")
        assert (interrupted.code, "killed" in interrupted.err) == (1, True)
    assert len(list_tables(home)) == len(OWNED)
    assert run("stream", "drop", "orders", "--yes", "orders").code == 0
    assert list_tables(home) == {"quarantine/sensors"}
    assert read_actions(run) == [
        ("stream drop", "orders", "started"),
        ("stream drop", "orders", "started"),
        ("stream drop", "orders", "done"),
    ]


def test_a_table_of_another_installation_is_left_alone(run: RunCommand, home: Path, file: Path) -> None:
    (home / "streams" / "orders" / "writer-id").write_text("another state")
    assert run("stream", "drop", "orders", "--yes", "orders").code == 0
    assert list_tables(home) == {*OWNED, "quarantine/sensors"}


def test_a_table_is_dropped_when_no_stream_writes_it(run: RunCommand, home: Path, file: Path) -> None:
    refused = run("table", "drop", "latest/orders", "--yes", "latest/orders")
    assert (refused.code, "stream orders writes it" in refused.err) == (1, True)
    shared = run("table", "drop", "quarantine/sensors", "--yes", "quarantine/sensors")
    assert (shared.code, "other streams use it" in shared.err) == (1, True)
    file.unlink()
    refused = run("table", "drop", "latest/orders", "--yes", "latest/orders")
    assert (refused.code, "stream orders writes it" in refused.err) == (1, True), "its state still needs it"
    assert run("stream", "drop", "orders", "--keep-tables", "--yes", "orders").code == 0
    assert run("table", "drop", "latest/orders", "--yes", "latest/orders").code == 0
    assert list_tables(home) == {*OWNED, "quarantine/sensors"} - {"latest/orders"}


def test_a_table_is_handed_over_on_purpose(
    run: RunCommand, home: Path, file: Path, write: WriteCatalogFile
) -> None:
    write("renamed.py", PIPELINE_TEMPLATE.format(name="renamed").replace('("renamed")', '("orders")'))
    file.unlink()
    assert run("stream", "drop", "orders", "--keep-tables", "--yes", "orders").code == 0
    claim = ("table", "claim", "latest/orders", "--stream", "renamed")
    assert run(*claim).code == 2, "it asks"
    handed_over = run(*claim, "--yes", "latest/orders")
    assert handed_over.code == 0, handed_over.err
    assert "latest/orders belongs to stream orders of " in handed_over.out
    owner = read_table_owner(open_delta_table(home / "warehouse" / "latest" / "orders"))
    assert owner == make_stream_claim(home / "streams", "renamed").owner
    assert ("table claim", "latest/orders", "") in read_actions(run)


def test_status_names_streams_without_a_file_and_invalid_files(
    run: RunCommand, file: Path, write: WriteCatalogFile
) -> None:
    file.unlink()
    write("clash.py", PIPELINE_TEMPLATE.format(name="clash").replace('("clash")', '("orders")'))
    status = run("status").out
    assert "orders: file removed. Restore it, or remove the stream: `penstock stream drop orders`" in status
    assert (
        "clash.py:4: write: table 'orders' already belongs to pipeline orders (its file was removed" in status
    )
    data = json.loads(run("status", "--json").out)
    assert [(problem["kind"], problem["name"]) for problem in data["invalid_files"]] == [
        ("pipeline", "clash")
    ]
    assert [(stream["stream"], stream["file_removed"]) for stream in data["streams"]] == [("orders", True)]


@pytest.mark.kafka
def test_a_topic_is_deleted_if_nothing_needs_it(
    run: RunCommand, home: Path, file: Path, broker: LocalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", broker.bootstrap)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    names = ["removal_old", "removal_changes", "sensors"]
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        with suppress(KafkaException):  # another test has created it
            future.result()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(3):
        producer.produce("removal_old", b"{}")
    producer.flush()
    file.write_text(file.read_text().rstrip() + '.publish("removal_changes")\n')
    catalog.reload_plan("orders")
    for topic, problem in (
        ("sensors", "the contract sensors.yaml declares it"),
        ("removal_changes", "pipeline orders publishes to it"),
    ):
        refused = run("topics", "delete", topic, "--yes", topic)
        assert (refused.code, problem in refused.err) == (1, True), refused.err
    assert "no consumer group has offsets of it" in run("topics", "delete", "removal_old", "--dry-run").out
    for group in ("removal_billing", "removal_reports"):
        reader = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False}
        )
        reader.commit(offsets=[TopicPartition("removal_old", 0, 2)], asynchronous=False)
        reader.close()
    shown = json.loads(run("topics", "delete", "removal_old", "--dry-run", "--json").out)
    assert shown["remarks"] == [
        "consumer group removal_billing has offsets of 1 partition, and has no members",
        "consumer group removal_reports has offsets of 1 partition, and has no members",
    ]
    assert shown["items"] == [{"kind": "topic", "name": "removal_old", "rows": 3, "size_bytes": None}]
    deleted = run("topics", "delete", "removal_old", "--yes", "removal_old")
    assert deleted.code == 0, deleted.err
    again = run("topics", "delete", "removal_old", "--yes", "removal_old")
    assert (again.code, "there is no topic 'removal_old'" in again.err) == (2, True)
