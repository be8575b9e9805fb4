"""OpenLineage events, sent by the official client to a file and over HTTP."""

import json
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from dagster import SkipReason, build_sensor_context
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.http_server import run_http_server
from tests.platform.definitions.conftest import build_contract

from penstock.engine.host.control import BatchRecord
from penstock.engine.plan.stages import Plan
from penstock.pipelines import catalog
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import count_reads_by_topic, count_result_rows, summarize_batches
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline
from penstock.platform.definitions.tables.lineage_sensor import build_lineage_definitions
from penstock.platform.lineage.openlineage import DatasetNamespaces, build_run_event, create_client
from penstock.platform.services.row_counts import count_rows_written
from penstock.platform.settings.model import LineageSettings

NAMESPACES = DatasetNamespaces("penstock", "broker-1:9092,broker-2:9092", "/warehouse")


@pytest.fixture
def send_event(make_plan: Callable[[str], Plan]) -> Callable[..., None]:
    field = replace(build_contract().fields[0], personal=True)
    declared = replace(build_contract(), owner="team:sensors", fields=(field, *build_contract().fields[1:]))

    def emit(pipeline: CatalogPipeline, summary: Any, target: LineageSettings) -> None:
        read, written = {"sensors": summary.read}, {"panes/minute": sum(summary.panes.values())}
        event = build_run_event(
            summary, read, written, pipeline.plan, pipeline.description, {"sensors": declared}, NAMESPACES
        )
        create_client(target).emit(event)

    return emit


def run_lineage_sensor(
    store: ControlStore,
    make_plan: Callable[[str], Plan],
    send_event: Callable[..., None],
    target: LineageSettings,
) -> str:
    pipelines = [CatalogPipeline(make_plan("minute"), "A mean a minute.")]
    (sensor,) = (
        build_lineage_definitions(
            pipelines, lambda: store, lambda *arguments: send_event(*arguments, target)
        ).sensors
        or []
    )
    context = build_sensor_context()
    result = sensor._raw_fn(context)
    assert isinstance(result, SkipReason)
    return context.cursor or ""


def test_an_event_describes_a_run_from_topics_to_tables(
    store: ControlStore, make_batch: Callable[[int], BatchRecord], make_plan, send_event, tmp_path: Path
) -> None:
    for number in range(3):
        store.record_batch(make_batch(number))
    file = tmp_path / "lineage" / "events.jsonl"
    assert json.loads(
        run_lineage_sensor(store, make_plan, send_event, LineageSettings(to=f"file:{file}"))
    ) == {"minute": 2}
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
    assert {
        column: [account["field"] for account in field_lineage["inputFields"]]
        for column, field_lineage in lineage.items()
    } == {
        "device": ["device"],
        "temperature": ["temperature"],
    }
    # Three batches emitted three panes each; the number of windows is unknown.
    counted = tables["/warehouse/panes/minute"]["outputFacets"]["outputStatistics"]["rowCount"]
    assert (counted, tables["/warehouse/latest/minute"].get("outputFacets") or {}) == (9, {})


def test_reads_are_counted_by_topic_over_all_batches(
    store: ControlStore, make_batch: Callable[[int], BatchRecord]
) -> None:
    for number in range(3):
        (account,) = make_batch(number).accounts
        other = replace(account, topic="clicks", end=account.start + 5, read=5, accepted=4)
        store.record_batch(replace(make_batch(number), accounts=(account, other)))
    summary = summarize_batches(store, "minute", 0)
    assert summary is not None
    assert count_reads_by_topic(store, summary) == {"sensors": 20, "clicks": 10}


def test_columns_of_a_later_stage_have_fields_of_topics(
    store: ControlStore, make_batch: Callable[..., BatchRecord]
) -> None:
    plan = catalog.load_plan("hashtags")
    store.record_batch(make_batch(0, "hashtags"))
    summary = summarize_batches(store, "hashtags", -1)
    assert summary is not None
    event = build_run_event(summary, {}, {}, plan, "", {}, NAMESPACES)
    fields = {
        table.name.rpartition("/")[2]: {
            column: sorted(output.field for output in field_lineage.inputFields)
            for column, field_lineage in table.facets["columnLineage"].fields.items()
        }
        for table in event.outputs
    }
    assert fields["hashtag_counts"] == {"tag": ["hashtags"]}
    assert fields["hashtags"] == {"typed": ["hashtags"], "suggestions": ["hashtags"]}


def test_latest_tables_and_topics_have_row_counts(
    store: ControlStore, make_batch: Callable[..., BatchRecord]
) -> None:
    plan = catalog.load_plan("card_alerts")
    result_rows = {"panes/card_alerts": 4, "published/card-alerts": 3, "ledger/card_alerts": 1}
    for number in range(2):
        store.record_batch(replace(make_batch(number, plan.name), result_rows=result_rows))
    summary = summarize_batches(store, plan.name, -1)
    assert summary is not None
    event = build_run_event(summary, {}, count_result_rows(store, summary), plan, "", {}, NAMESPACES)
    row_counts = {output.name: output.outputFacets["outputStatistics"].rowCount for output in event.outputs}
    assert row_counts == {"/warehouse/panes/card_alerts": 8, "card-alerts": 6}


def test_a_published_topic_has_no_row_count(
    store: ControlStore, make_batch: Callable[..., BatchRecord]
) -> None:
    store.record_batch(make_batch(0, "card_alerts"))
    summary = summarize_batches(store, "card_alerts", -1)
    assert summary is not None
    event = build_run_event(
        summary, {}, {"panes/card_alerts": 4}, catalog.load_plan("card_alerts"), "", {}, NAMESPACES
    )
    statistics = {
        (output.namespace, output.name): output.outputFacets.get("outputStatistics")
        for output in event.outputs
    }
    assert set(statistics) == {
        ("file", "/warehouse/panes/card_alerts"),
        ("kafka://broker-1:9092", "card-alerts"),
    }
    assert statistics["file", "/warehouse/panes/card_alerts"].rowCount == 4
    assert statistics["kafka://broker-1:9092", "card-alerts"] is None


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), max_size=6),
    st.integers(0, 9),
    st.integers(0, 9),
    st.booleans(),
)
def test_rows_are_counted_by_batch_for_any_layout_of_files(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[int]], account: int, other: int, compact: bool
) -> None:
    warehouse, plan = tmp_path_factory.mktemp("warehouse"), catalog.load_plan("sensor_minute")
    first, last = sorted((account, other))
    for batches in files:
        for table in ("panes/sensor_minute", "latest/sensor_minute"):
            write_deltalake(warehouse / table, pa.table({"batch_id": batches}), mode="append")
    if files and compact:
        DeltaTable(warehouse / "panes/sensor_minute").optimize.compact()
    inside = sum(first <= batch <= last for batches in files for batch in batches)
    assert count_rows_written(warehouse, plan, first, last) == (
        {"panes/sensor_minute": inside} if files else {}
    )


def test_an_unreadable_table_has_no_row_count(tmp_path: Path) -> None:
    table = tmp_path / "panes/sensor_minute"
    write_deltalake(table, pa.table({"batch_id": [1, 5]}))
    next(table.glob("*.parquet")).write_bytes(b"")
    plan = catalog.load_plan("sensor_minute")
    assert count_rows_written(tmp_path, plan, 0, 3) == {}
    assert count_rows_written(tmp_path, plan, 0, 9) == {"panes/sensor_minute": 2}


def test_the_same_batches_have_the_same_run_id(
    store: ControlStore, make_batch: Callable[[int], BatchRecord], make_plan
) -> None:
    store.record_batch(make_batch(0))
    summary = summarize_batches(store, "minute", -1)
    assert summary is not None
    account, other = (
        build_run_event(summary, {}, {}, make_plan("minute"), "", {}, NAMESPACES).run.runId for _ in range(2)
    )
    assert account == other
    store.record_batch(make_batch(1))
    later = summarize_batches(store, "minute", -1)
    assert later is not None
    assert build_run_event(later, {}, {}, make_plan("minute"), "", {}, NAMESPACES).run.runId != account


class Receiver(BaseHTTPRequestHandler):
    """Stores the requests."""

    requests: ClassVar[list[tuple[str, str, Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((self.path, self.headers.get("Authorization", ""), json.loads(body)))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_events_are_sent_over_http_with_a_secret_key(
    store: ControlStore,
    make_batch: Callable[[int], BatchRecord],
    make_plan,
    send_event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LINEAGE_KEY", "secret")
    store.record_batch(make_batch(0))
    with run_http_server(Receiver) as address:
        run_lineage_sensor(store, make_plan, send_event, LineageSettings(to=address, key="env:LINEAGE_KEY"))
    ((path, key, event),) = Receiver.requests
    assert (path, key, event["job"]["name"]) == ("/api/v1/lineage", "Bearer secret", "minute")
