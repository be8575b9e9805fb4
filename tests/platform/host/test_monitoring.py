"""The dashboard and alert rules use only metrics and labels that a host exports."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, ProcessCollector

from penstock.engine.batch.accounts import RECORD_FATES, PartitionAccount
from penstock.engine.host.control import BatchRecord, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.host.host_metrics import STREAM_STATES, HostMetrics
from penstock.platform.settings import load_settings

FOLDER = Path("platform/monitoring")
PROMETHEUS_METRICS = {"up": {"job", "instance"}}
METRIC = re.compile(r"\b((?:penstock|process)_\w+|up)(?:\{([^}]*)\})?")
LABEL = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
ADDED_BY_PROMETHEUS = {"job", "instance", "le"}


@pytest.fixture(scope="module")
def exported() -> Mapping[str, set[str]]:
    """Every metric of a host with a stream, and its labels."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    metrics = HostMetrics(registry)
    account = PartitionAccount("t", 0, 0, 10, 10, 6, 1, 1, 1, 1)
    metrics.count_batch(
        BatchRecord("s", 0, 1, "data", 5, 4, (account,), {"early": 1}, 1, 8, durations_ms={"process": 2.0})
    )
    metrics.record_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    labels_by_metric: dict[str, set[str]] = defaultdict(set, PROMETHEUS_METRICS)
    for family in registry.collect():
        for sample in family.samples:
            labels_by_metric[sample.name] |= set(sample.labels)
    return labels_by_metric


def load_rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def load_panels() -> list[dict[str, Any]]:
    return json.loads((FOLDER / "dashboard.json").read_text("utf-8"))["panels"]


def list_expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in load_rules())
    yield from (target["expr"] for panel in load_panels() for target in panel["targets"])


@pytest.mark.parametrize("expression", list(list_expressions()))
def test_an_expression_uses_existing_metrics_and_labels(
    expression: str, exported: Mapping[str, set[str]]
) -> None:
    used = METRIC.findall(expression)
    assert used
    for metric, selectors in used:
        assert metric in exported, expression
        for label, value in LABEL.findall(selectors):
            assert label in exported[metric] | ADDED_BY_PROMETHEUS, (metric, label)
            assert label != "fate" or value in RECORD_FATES, value
            assert label != "state" or value in STREAM_STATES, value
    labels = {label.strip() for group in GROUPING.findall(expression) for label in group.split(",")}
    assert labels <= set.union(ADDED_BY_PROMETHEUS, *(exported[metric] for metric, _ in used))
    assert expression.count("(") == expression.count(")")


def test_every_own_metric_is_on_the_dashboard(exported: Mapping[str, set[str]]) -> None:
    dashboard_text = " ".join(target["expr"] for panel in load_panels() for target in panel["targets"])
    own_metrics = {
        re.sub(r"_(total|bucket|sum|count|created)$", "", name)
        for name in exported
        if name.startswith("penstock")
    }
    assert {name for name in own_metrics if name not in dashboard_text} <= {
        "penstock_stream_running",
        "penstock_last_batch_timestamp_seconds",
        "penstock_lag_records",  # deprecated
    }


def test_every_alert_has_a_severity_and_a_description() -> None:
    for rule in load_rules():
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert {"summary", "description"} <= rule["annotations"].keys()
    assert len({rule["alert"] for rule in load_rules()}) == len(load_rules())


def test_prometheus_scrapes_the_host_and_loads_the_rules() -> None:
    config = yaml.safe_load((FOLDER / "prometheus.yaml").read_text("utf-8"))
    (job,) = config["scrape_configs"]
    assert job["static_configs"][0]["targets"] == [f"127.0.0.1:{load_settings().settings.host.metrics_port}"]
    assert [(FOLDER / name).exists() for name in config["rule_files"]] == [True]


def test_panels_do_not_overlap() -> None:
    occupied: set[tuple[int, int]] = set()
    for panel in load_panels():
        position = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(position["x"], position["x"] + position["w"])
            for y in range(position["y"], position["y"] + position["h"])
        }
        assert not cells & occupied
        assert all(x < 24 for x, _ in cells)
        occupied |= cells


def test_expressions_of_a_panel_have_one_unit() -> None:
    for panel in load_panels():
        other_unit = {
            override["matcher"]["options"]
            for override in panel["fieldConfig"]["overrides"]
            if override["matcher"]["id"] == "byFrameRefID"
        }
        panel_expressions = [
            target["expr"] for target in panel["targets"] if target["refId"] not in other_unit
        ]
        assert len({"_bytes" in expression for expression in panel_expressions}) == 1, panel["title"]
        assert (panel["fieldConfig"]["defaults"]["unit"] == "bytes") == ("_bytes" in panel_expressions[0]), (
            panel["title"]
        )
