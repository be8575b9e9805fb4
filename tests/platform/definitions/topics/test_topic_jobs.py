"""Drift of topics and the ingestion job, with a real broker."""

import dataclasses
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterInstance, Definitions, SensorResult, SkipReason, build_sensor_context

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, TopicLayout, load_contract
from penstock.ingestion.ledger import read_ledger_state
from penstock.ingestion.topics import apply_topic_plan, plan_cluster_changes
from penstock.platform.definitions.topics.ingest_job import build_ingest_job
from penstock.platform.definitions.topics.topic_drift import build_topic_definitions
from penstock.platform.services.feeds import open_feed
from penstock.platform.settings import load_settings

pytestmark = pytest.mark.kafka


def build_contract(topic: str) -> Contract:
    return dataclasses.replace(load_contract("sensors"), topic=topic, layout=TopicLayout(partitions=2))


def run_sensor(definitions: Definitions, instance: DagsterInstance, cursor: str | None):
    sensor = definitions.resolve_sensor_def("topic_drift")
    with build_sensor_context(instance=instance, cursor=cursor) as context:
        result = sensor(context)
    if isinstance(result, SkipReason):
        return [], cursor
    assert isinstance(result, SensorResult)
    for event in result.asset_events:
        instance.report_runless_asset_event(event)  # as the daemon does
    events = [
        (event_.asset_key.path[-1], event_.passed, event_.metadata["state"].value)
        for event_ in result.asset_events
    ]
    return events, result.cursor


def test_drift_is_reported_once_until_it_changes(broker: LocalBroker, instance: DagsterInstance):
    contract = build_contract("drifting")
    definitions = build_topic_definitions(
        [contract], lambda declared: plan_cluster_changes(broker.bootstrap, declared)
    )
    first, cursor = run_sensor(definitions, instance, None)
    assert first == [("drifting", False, "drifting: to create; drifting.dead-letters: to create")]
    assert run_sensor(definitions, instance, cursor) == ([], cursor)
    apply_topic_plan(broker.bootstrap, plan_cluster_changes(broker.bootstrap, [contract]))
    second, cursor = run_sensor(definitions, instance, cursor)
    assert second == [("drifting", True, "matches its contract")]
    longer = dataclasses.replace(contract, layout=TopicLayout(partitions=2, retention_ms=-1))
    changed = build_topic_definitions(
        [longer], lambda declared: plan_cluster_changes(broker.bootstrap, declared)
    )
    ((_, passed, state),), _ = run_sensor(changed, instance, cursor)
    assert not passed
    assert "retention.ms is 604800000 and should be -1" in state


def test_an_unreachable_broker_is_reported_and_is_no_drift(instance: DagsterInstance, unused_port: int):
    contract = build_contract("away")
    address = f"127.0.0.1:{unused_port}"
    definitions = build_topic_definitions(
        [contract],
        lambda declared: plan_cluster_changes(
            address, declared, client_settings={"socket.timeout.ms": 1_000}, timeout_s=1.0
        ),
    )
    ((_, passed, state),), _ = run_sensor(definitions, instance, None)
    assert not passed
    assert "Check that the broker is up" in state


@pytest.fixture
def unused_port() -> int:
    from penstock.infra.ports import find_free_ports

    return find_free_ports(1)[0]


def test_the_ingest_job_sends_records_and_materializes_the_topic(
    broker: LocalBroker, instance: DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", broker.bootstrap)
    apply_topic_plan(
        broker.bootstrap, plan_cluster_changes(broker.bootstrap, [load_contract("nexmark-persons")])
    )
    settings = load_settings().settings
    job = build_ingest_job(("nexmark-persons",), lambda order: open_feed(settings, order))
    config = {"source": "nexmark-persons", "count": 250, "options": {"seed": 5}}
    assert job.execute_in_process(run_config=config, instance=instance).success
    assert job.execute_in_process(run_config=config, instance=instance).success
    event = instance.get_latest_materialization_event(AssetKey(["topics", "nexmark-persons"]))
    metadata = {name: value.value for name, value in event.asset_materialization.metadata.items()}
    assert (metadata["records"], metadata["first_sequence"], metadata["next_sequence"]) == (250, 250, 500)
    assert read_ledger_state(tmp_path / "home" / "producers" / "nexmark-persons-5").acknowledged_until == 500


def test_the_ingest_job_fails_with_the_reasons_of_refused_records(
    broker: LocalBroker, instance: DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", broker.bootstrap)
    apply_topic_plan(broker.bootstrap, plan_cluster_changes(broker.bootstrap, [load_contract("ovens")]))
    settings, path = load_settings().settings, tmp_path / "readings.jsonl"
    path.write_text('{"oven":1}\n' * 3)
    job = build_ingest_job(("json-lines",), lambda order: open_feed(settings, order))
    config = {"source": "json-lines", "topic": "ovens", "options": {"path": str(path)}}
    result = job.execute_in_process(
        run_config={**config, "producer": "strict"}, instance=instance, raise_on_error=False
    )
    (failure,) = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    assert not result.success
    assert "| 3 | " in failure.user_failure_data.metadata["refused"].value
    assert instance.get_latest_materialization_event(AssetKey(["topics", "ovens"])) is None
    lenient = {**config, "producer": "lenient", "allow_invalid": True}
    assert job.execute_in_process(run_config=lenient, instance=instance).success
