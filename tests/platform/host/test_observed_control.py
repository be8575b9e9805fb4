"""Metrics, health and alerts of a host."""

import json
import logging
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from tests.patience import PATIENCE_S

from penstock.engine.host.control import (
    BatchRecord,
    DesiredRunState,
    HostControl,
    PartitionAccount,
    StreamHealth,
)
from penstock.engine.host.stream_state import StreamState
from penstock.engine.host_settings import HostSettings
from penstock.platform.control import open_control_store
from penstock.platform.host.host_metrics import HostMetrics
from penstock.platform.host.http_server import serve_http
from penstock.platform.host.observed_control import ObservedControl
from penstock.platform.logging_setup import JsonLogFormatter


@pytest.fixture
def control(tmp_path: Path, registry: CollectorRegistry) -> Iterator[ObservedControl]:
    store = open_control_store(f"sqlite:///{tmp_path}/control.db")
    yield ObservedControl(store, HostMetrics(registry))
    store.close()


def build_batch(number: int) -> BatchRecord:
    account = PartitionAccount("sensors", 0, 0, 10, 10, 6, 1, 1, 1, filtered=1)
    return BatchRecord(
        "s",
        number,
        1,
        "data",
        5_000,
        4_000,
        (account,),
        {"early": 3},
        3,
        8,
        durations_ms={"process": 20.0},
        committed_at_ms=5_000,
    )


def scrape(port: int) -> dict[tuple[str, str], float]:
    """Return every sample by its name and its labels except the stream."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S).read().decode()
    samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = [value for name, value in sample.labels.items() if name != "stream"]
            samples[sample.name, ",".join(labels)] = sample.value
    return samples


def test_metrics_count_committed_batches(control: ObservedControl, registry: CollectorRegistry) -> None:
    control.record_batch(build_batch(0))
    control.record_batch(build_batch(1))
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    with serve_http(HostSettings(metrics_port=0), registry, lambda: control.stream_health) as port:
        samples = scrape(port)
    assert samples["penstock_batches_total", "data"] == 2
    assert samples["penstock_records_read_total", ""] == 20
    fates = ("accepted", "late", "quarantined", "duplicate", "filtered")
    assert [samples["penstock_records_total", fate] for fate in fates] == [12, 2, 2, 2, 2]
    assert samples["penstock_panes_total", "early"] == 6
    assert (
        samples["penstock_consumer_lag_records", ""],
        samples["penstock_watermark_timestamp_seconds", ""],
    ) == (
        8,
        4,
    )
    assert samples["penstock_stream_running", ""] == 1
    assert samples["penstock_batch_duration_seconds_sum", "process"] == pytest.approx(0.04)


def test_the_host_is_healthy_until_a_stream_fails(
    control: ObservedControl, registry: CollectorRegistry
) -> None:
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    control.report_health(StreamHealth("t", StreamState.DRAINED, "", 0))
    with serve_http(HostSettings(metrics_port=0), registry, lambda: control.stream_health) as port:
        address = f"http://127.0.0.1:{port}/health"
        assert json.load(urllib.request.urlopen(address, timeout=PATIENCE_S))["healthy"] is True
        control.report_health(StreamHealth("t", StreamState.RETRYING, "no such field", 1))
        with pytest.raises(HTTPError) as refused:
            urllib.request.urlopen(address, timeout=5)
        answer = json.load(refused.value)
        refused.value.close()
    assert refused.value.code == 503
    assert answer["streams"]["t"] == {"state": "retrying", "reason": "no such field"}


def test_every_call_is_passed_to_the_store(control: ObservedControl) -> None:
    observed: HostControl = control
    lease = observed.acquire_lease("s", "host", 0, 1_000)
    assert observed.read_lease("s") == lease
    assert observed.renew_lease(lease, 10, 1_000)
    observed.record_batch(build_batch(3))
    assert observed.read_last_batch("s") == build_batch(3)
    observed.release_lease(lease)
    assert not observed.renew_lease(lease, 20, 1_000)
    control._store.set_desired_state("s", DesiredRunState.RUNNING, 0)
    assert observed.read_desired_states()["s"].desired is DesiredRunState.RUNNING


def test_a_json_log_line_has_the_extra_fields() -> None:
    record = logging.makeLogRecord(
        {"name": "host", "levelname": "INFO", "msg": "batch %d", "args": (7,), "stream": "s"}
    )
    record.created = 0.5
    line = json.loads(JsonLogFormatter().format(record))
    assert line == {
        "at": "1970-01-01T00:00:00.500+00:00",
        "level": "info",
        "logger": "host",
        "message": "batch 7",
        "stream": "s",
    }


def collect_alerts(control: ObservedControl) -> list[str]:
    states: list[str] = []
    control._on_alert = lambda alert: states.append(alert.state)
    return states


def test_a_failure_ends_with_a_committed_batch_and_not_with_a_retry(control: ObservedControl) -> None:
    alerts = collect_alerts(control)
    for at_ms in range(1, 6):
        control.report_health(StreamHealth("s", StreamState.RETRYING, "no such field", at_ms))
        control.report_health(StreamHealth("s", StreamState.RUNNING, "", at_ms))
    assert alerts == ["retrying"]
    control.record_batch(build_batch(0))
    control.record_batch(build_batch(1))
    assert alerts == ["retrying", "running"]


def test_a_lasting_failure_is_alerted_each_hour(control: ObservedControl) -> None:
    alerts = collect_alerts(control)
    for minute in range(125):
        control.report_health(
            StreamHealth("s", StreamState.RETRYING, "the broker is unavailable", minute * 60_000)
        )
    assert alerts == ["retrying"] * 3
    control.report_health(StreamHealth("s", StreamState.DRAINED, "", 126 * 60_000))
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 127 * 60_000))
    control.record_batch(build_batch(0))
    assert alerts == ["retrying"] * 3, "a user drained it"


def test_each_failure_is_counted_once(control: ObservedControl, registry: CollectorRegistry) -> None:
    for at_ms in range(4):
        health = StreamHealth("s", StreamState.RETRYING, "no such field", at_ms)
        control.report_health(health)
        control.report_health(health)
    assert registry.get_sample_value("penstock_stream_failures_total", {"stream": "s"}) == 4


def test_a_fenced_host_shows_no_metrics_of_its_stream(
    control: ObservedControl, registry: CollectorRegistry
) -> None:
    alerts = collect_alerts(control)
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    control.report_health(StreamHealth("t", StreamState.RUNNING, "", 0))
    control.record_batch(build_batch(0))
    control.report_lost(StreamHealth("s", StreamState.FENCED, "another host took it over", 1))
    control.record_batch(build_batch(1))  # committed before, and reported late
    gauges = [
        (sample.name, sample.labels["stream"])
        for family in registry.collect()
        if family.type == "gauge"
        for sample in family.samples
    ]
    assert {stream for name, stream in gauges if not name.endswith("_created")} == {"t"}
    assert registry.get_sample_value("penstock_batches_total", {"stream": "s", "kind": "data"}) == 2
    assert (set(control.stream_health), alerts) == ({"t"}, ["fenced"])
    assert control._store.read_health("s").state == "running", "as the other host reports"
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 2))
    control.record_batch(build_batch(2))
    assert registry.get_sample_value("penstock_stream_running", {"stream": "s"}) == 1
    assert alerts == ["fenced", "running"]
