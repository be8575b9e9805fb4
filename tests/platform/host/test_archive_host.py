"""The life cycle of an archive: requested in the control store, run by a host, checked by Dagster."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from dagster import AssetKey, DagsterInstance, Definitions, build_sensor_context
from deltalake import DeltaTable
from tests.patience import PATIENCE_S

from penstock.core.clock import now_ms
from penstock.core.kafka_client import BrokerAccess
from penstock.core.waiting import wait_until
from penstock.engine.archive.archive_names import archive_name, find_archived_topic, records_path
from penstock.engine.archive.archive_stream import ArchiveConfig, ArchiveStream
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.host.stream_handle import StreamHandle
from penstock.engine.host.stream_host import StreamHost
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import load_contract
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.definitions.asset_specs import AssetContext
from penstock.platform.definitions.catalog_definitions import build_catalog_definitions
from penstock.platform.definitions.run_actions import RunActions
from penstock.platform.definitions.topics.archive_assets import ARCHIVE_COMPLETE_CHECK
from penstock.platform.services.stream_catalog import list_stream_names
from penstock.platform.services.stream_lifecycle import STREAM_COMMANDS, request_state, wait_for_state

pytestmark = pytest.mark.kafka
STREAM = archive_name("nexmark-auctions")

HOUR_MS = 3_600_000
"""How far the clock of the definitions is ahead, so that the interval of each report is over."""


def create_host(store: ControlStore, broker: LocalBroker, folder: Path) -> StreamHost:
    def make(name: str, fence: WriteFence, report_outcome: Callable[[BatchOutcome], None]) -> StreamHandle:
        topic = find_archived_topic(name)
        assert topic is not None
        config = ArchiveConfig(
            BrokerAccess(broker.bootstrap), folder / name, folder / "warehouse", batch_interval_ms=0
        )
        return ArchiveStream(topic, config, fence, report_outcome, now_ms)

    return StreamHost("host", store, make, now_ms, is_spark_alive=lambda: True)


@contextmanager
def run_host(host: StreamHost) -> Iterator[None]:
    """Run a host in a thread until the context ends."""
    stop = threading.Event()
    thread = threading.Thread(target=host.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def build_definitions(store: ControlStore, folder: Path) -> Definitions:
    context = AssetContext(str(folder / "warehouse"), "team:data", Path("/contracts"))
    return build_catalog_definitions(
        [load_contract("nexmark-auctions")],
        [],
        context,
        lambda: store,
        RunActions(folder),
        lambda: now_ms() + HOUR_MS,
        0,
    )


def evaluate_archive_check(defs: Definitions, instance: DagsterInstance) -> dict[str, object]:
    job = defs.resolve_implicit_global_asset_job_def()
    key = next(
        key for key in job.asset_layer.asset_graph.asset_check_keys if key.name == ARCHIVE_COMPLETE_CHECK
    )
    result = job.get_subset(asset_check_selection={key}, asset_selection=set()).execute_in_process(
        instance=instance
    )
    (evaluation,) = result.get_asset_check_evaluations()
    return {"passed": evaluation.passed, **{name: value.value for name, value in evaluation.metadata.items()}}


def test_a_host_runs_an_archive_while_it_is_requested(own_broker: LocalBroker, tmp_path: Path) -> None:
    broker = own_broker  # the topic needs a contract, and other tests write to the topics of contracts
    broker.create_topic("nexmark-auctions", 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(500):
        producer.produce("nexmark-auctions", b"%d" % number, partition=number % 2)
    producer.flush()
    store = open_control_store(f"sqlite:///{tmp_path}/control.db")
    with run_host(create_host(store, broker, tmp_path)):
        wait_for_state(store, request_state(store, STREAM, STREAM_COMMANDS["start"], list_stream_names()), 60)
        wait_until(
            lambda: list_archived_ends(store) == [250, 250], PATIENCE_S, "the archive to have everything"
        )
        wait_for_state(store, request_state(store, STREAM, STREAM_COMMANDS["drain"], list_stream_names()), 60)
    assert store.read_health(STREAM).state == "drained"
    defs = build_definitions(store, tmp_path)
    with DagsterInstance.ephemeral() as instance:
        with build_sensor_context(instance=instance) as context:
            events = defs.resolve_sensor_def("committed_batches")(context).asset_events
        events_by_key = {event.asset_key: event for event in events}
        raw = events_by_key[AssetKey(["raw", "nexmark-auctions"])]
        assert (raw.metadata["records_read"].value, raw.metadata["rows"].value) == (500, 500)
        assert evaluate_archive_check(defs, instance) == {"passed": True, "problems": []}
        DeltaTable(tmp_path / "warehouse" / records_path("nexmark-auctions")).delete("offset = 7")
        metadata = evaluate_archive_check(defs, instance)
    assert metadata["passed"] is False
    assert metadata["problems"] == [
        f"partition {partition}: 1 records are missing, the first at offset 7" for partition in (0, 1)
    ]
    store.close()


def list_archived_ends(store: ControlStore) -> list[int]:
    last = store.read_last_batch(STREAM)
    return [] if last is None else [account.end for account in last.accounts]
