"""What OpenLineage is told, by its official client, into a file and over HTTP."""

import json
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from dagster import SkipReason, build_sensor_context
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.platform.definitions.conftest import contract

from penstock.engine.host.control import BatchRecord
from penstock.engine.plan import Plan
from penstock.pipelines import catalog
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import count_reads_by_topic, count_result_rows, summarize_batches
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline
from penstock.platform.definitions.tables.lineage_sensor import build_lineage_definitions
from penstock.platform.lineage.openlineage import DatasetNamespaces, build_run_event, create_client
from penstock.platform.services.row_counts import count_rows_written
from penstock.platform.settings.model import LineageSettings

PLACES = DatasetNamespaces("penstock", "broker-1:9092,broker-2:9092", "/warehouse")


@pytest.fixture
def send(example: Callable[[str], Plan]) -> Callable[..., None]:
    field = replace(contract().fields[0], personal=True)
    declared = replace(contract(), owner="team:sensors", fields=(field, *contract().fields[1:]))

    def sent(pipeline: CatalogPipeline, summary: Any, to: LineageSettings) -> None:
        read, written = {"sensors": summary.read}, {"panes/minute": sum(summary.panes.values())}
        event = build_run_event(
            summary, read, written, pipeline.plan, pipeline.description, {"sensors": declared}, PLACES
        )
        create_client(to).emit(event)

    return sent


def tell(
    store: ControlStore, example: Callable[[str], Plan], send: Callable[..., None], to: LineageSettings
) -> str:
    pipelines = [CatalogPipeline(example("minute"), "A mean a minute.")]
    (sensor,) = (
        build_lineage_definitions(pipelines, lambda: store, lambda *told: send(*told, to)).sensors or []
    )
    context = build_sensor_context()
    said = sensor._raw_fn(context)
    assert isinstance(said, SkipReason)
    return context.cursor or ""


def test_a_run_of_a_stream_is_told_from_its_topics_to_its_tables(
    store: ControlStore, sample: Callable[[int], BatchRecord], example, send, tmp_path: Path
) -> None:
    for number in range(3):
        store.record_batch(sample(number))
    file = tmp_path / "lineage" / "events.jsonl"
    assert json.loads(tell(store, example, send, LineageSettings(to=f"file:{file}"))) == {"minute": 2}
    event = json.loads(file.read_text("utf-8"))
    assert (event["eventType"], event["job"]["namespace"], event["job"]["name"]) == (
        "COMPLETE",
        "penstock",
        "minute",
    )
    (topic,) = event["inputs"]
    assert (topic["namespace"], topic["name"]) == ("kafka://broker-1:9092", "sensors")
    described = topic["facets"]["schema"]["fields"][0]
    assert {key: described[key] for key in ("name", "type", "description")} == {
        "name": "device", "type": "string", "description": "Which device."
    }  # fmt: skip
    assert topic["facets"]["tags"]["tags"][0]["field"] == "device"
    assert topic["facets"]["ownership"]["owners"][0]["name"] == "team:sensors"
    assert topic["inputFacets"]["inputStatistics"]["rowCount"] == 30
    tables = {table["name"]: table for table in event["outputs"]}
    assert set(tables) == {"/warehouse/latest/minute", "/warehouse/panes/minute"}
    lineage = tables["/warehouse/latest/minute"]["facets"]["columnLineage"]["fields"]
    assert {column: [one["field"] for one in told["inputFields"]] for column, told in lineage.items()} == {
        "device": ["device"],
        "temperature": ["temperature"],
    }
    # Three batches showed three panes each; how many windows they are nobody counts.
    counted = tables["/warehouse/panes/minute"]["outputFacets"]["outputStatistics"]["rowCount"]
    assert (counted, tables["/warehouse/latest/minute"].get("outputFacets") or {}) == (9, {})


def test_records_are_counted_by_topic_over_all_batches_that_are_told(
    store: ControlStore, sample: Callable[[int], BatchRecord]
) -> None:
    for number in range(3):
        (one,) = sample(number).accounts
        other = replace(one, topic="clicks", end=one.start + 5, read=5, folded=4)
        store.record_batch(replace(sample(number), accounts=(one, other)))
    summary = summarize_batches(store, "minute", 0)
    assert summary is not None
    assert count_reads_by_topic(store, summary) == {"sensors": 20, "clicks": 10}


def test_columns_of_a_later_stage_are_told_by_the_fields_of_its_topics(
    store: ControlStore, sample: Callable[..., BatchRecord]
) -> None:
    plan = catalog.load_plan("hashtags")
    store.record_batch(sample(0, "hashtags"))
    summary = summarize_batches(store, "hashtags", -1)
    assert summary is not None
    event = build_run_event(summary, {}, {}, plan, "", {}, PLACES)
    fields = {
        table.name.rpartition("/")[2]: {
            column: sorted(each.field for each in told.inputFields)
            for column, told in table.facets["columnLineage"].fields.items()
        }
        for table in event.outputs
    }
    assert fields["hashtag_counts"] == {"tag": ["hashtags"]}
    assert fields["hashtags"] == {"typed": ["hashtags"], "suggestions": ["hashtags"]}


def test_tables_of_newest_values_and_topics_are_told_with_the_rows_that_batches_gave(
    store: ControlStore, sample: Callable[..., BatchRecord]
) -> None:
    plan = catalog.load_plan("card_alerts")
    given = {"panes/card_alerts": 4, "published/card-alerts": 3, "ledger/card_alerts": 1}
    for number in range(2):
        store.record_batch(replace(sample(number, plan.name), result_rows=given))
    summary = summarize_batches(store, plan.name, -1)
    assert summary is not None
    event = build_run_event(summary, {}, count_result_rows(store, summary), plan, "", {}, PLACES)
    told = {each.name: each.outputFacets["outputStatistics"].rowCount for each in event.outputs}
    assert told == {"/warehouse/panes/card_alerts": 8, "card-alerts": 6}


def test_a_topic_that_panes_are_published_to_is_told_without_a_count(
    store: ControlStore, sample: Callable[..., BatchRecord]
) -> None:
    store.record_batch(sample(0, "card_alerts"))
    summary = summarize_batches(store, "card_alerts", -1)
    assert summary is not None
    event = build_run_event(
        summary, {}, {"panes/card_alerts": 4}, catalog.load_plan("card_alerts"), "", {}, PLACES
    )
    told = {(each.namespace, each.name): each.outputFacets.get("outputStatistics") for each in event.outputs}
    assert set(told) == {("file", "/warehouse/panes/card_alerts"), ("kafka://broker-1:9092", "card-alerts")}
    assert told["file", "/warehouse/panes/card_alerts"].rowCount == 4
    assert told["kafka://broker-1:9092", "card-alerts"] is None


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), max_size=6),
    st.integers(0, 9),
    st.integers(0, 9),
    st.booleans(),
)
def test_rows_are_counted_by_the_batches_that_wrote_them_however_files_lie(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[int]], one: int, other: int, compact: bool
) -> None:
    warehouse, plan = tmp_path_factory.mktemp("warehouse"), catalog.load_plan("sensor_minute")
    first, last = sorted((one, other))
    for batches in files:
        for table in ("panes/sensor_minute", "latest/sensor_minute"):
            write_deltalake(warehouse / table, pa.table({"batch_id": batches}), mode="append")
    if files and compact:
        DeltaTable(warehouse / "panes/sensor_minute").optimize.compact()
    inside = sum(first <= batch <= last for batches in files for batch in batches)
    assert count_rows_written(warehouse, plan, first, last) == (
        {"panes/sensor_minute": inside} if files else {}
    )


def test_a_table_that_cannot_be_read_is_told_without_a_count(tmp_path: Path) -> None:
    table = tmp_path / "panes/sensor_minute"
    write_deltalake(table, pa.table({"batch_id": [1, 5]}))
    next(table.glob("*.parquet")).write_bytes(b"")
    plan = catalog.load_plan("sensor_minute")
    assert count_rows_written(tmp_path, plan, 0, 3) == {}
    assert count_rows_written(tmp_path, plan, 0, 9) == {"panes/sensor_minute": 2}


def test_the_same_batches_are_the_same_run(
    store: ControlStore, sample: Callable[[int], BatchRecord], example
) -> None:
    store.record_batch(sample(0))
    summary = summarize_batches(store, "minute", -1)
    assert summary is not None
    one, other = (
        build_run_event(summary, {}, {}, example("minute"), "", {}, PLACES).run.runId for _ in range(2)
    )
    assert one == other
    store.record_batch(sample(1))
    later = summarize_batches(store, "minute", -1)
    assert later is not None
    assert build_run_event(later, {}, {}, example("minute"), "", {}, PLACES).run.runId != one


class Receiver(BaseHTTPRequestHandler):
    """Takes what it is sent."""

    heard: ClassVar[list[tuple[str, str, Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.heard.append((self.path, self.headers.get("Authorization", ""), json.loads(body)))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_events_are_sent_over_http_with_a_key_that_no_setting_holds(
    store: ControlStore, sample: Callable[[int], BatchRecord], example, send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINEAGE_KEY", "secret")
    store.record_batch(sample(0))
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        to = LineageSettings(to=f"http://127.0.0.1:{server.server_port}", key="env:LINEAGE_KEY")
        tell(store, example, send, to)
    finally:
        server.shutdown()
        server.server_close()
    ((path, key, event),) = Receiver.heard
    assert (path, key, event["job"]["name"]) == ("/api/v1/lineage", "Bearer secret", "minute")
