"""The dashboard and the alert rules name metrics and labels that a host shows, and nothing else."""

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
OF_PROMETHEUS = {"up": {"job", "instance"}}
METRIC = re.compile(r"\b((?:penstock|process)_\w+|up)(?:\{([^}]*)\})?")
LABEL = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
ADDED_BY_PROMETHEUS = {"job", "instance", "le"}


@pytest.fixture(scope="module")
def shown() -> Mapping[str, set[str]]:
    """Every metric of a host that ran a stream, and its labels."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    metrics = HostMetrics(registry)
    account = PartitionAccount("t", 0, 0, 10, 10, 6, 1, 1, 1, 1)
    metrics.count_batch(
        BatchRecord("s", 0, 1, "data", 5, 4, (account,), {"early": 1}, 1, 8, durations_ms={"fold": 2.0})
    )
    metrics.record_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    found: dict[str, set[str]] = defaultdict(set, OF_PROMETHEUS)
    for family in registry.collect():
        for sample in family.samples:
            found[sample.name] |= set(sample.labels)
    return found


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return json.loads((FOLDER / "dashboard.json").read_text("utf-8"))["panels"]


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    yield from (target["expr"] for panel in panels() for target in panel["targets"])


@pytest.mark.parametrize("expression", list(expressions()))
def test_an_expression_names_metrics_and_labels_that_there_are(
    expression: str, shown: Mapping[str, set[str]]
) -> None:
    named = METRIC.findall(expression)
    assert named
    for metric, selectors in named:
        assert metric in shown, expression
        for label, value in LABEL.findall(selectors):
            assert label in shown[metric] | ADDED_BY_PROMETHEUS, (metric, label)
            assert label != "fate" or value in RECORD_FATES, value
            assert label != "state" or value in STREAM_STATES, value
    labels = {label.strip() for group in GROUPING.findall(expression) for label in group.split(",")}
    assert labels <= set.union(ADDED_BY_PROMETHEUS, *(shown[metric] for metric, _ in named))
    assert expression.count("(") == expression.count(")")


def test_every_metric_of_ours_is_on_the_dashboard(shown: Mapping[str, set[str]]) -> None:
    on_it = " ".join(target["expr"] for panel in panels() for target in panel["targets"])
    ours = {
        re.sub(r"_(total|bucket|sum|count|created)$", "", name)
        for name in shown
        if name.startswith("penstock")
    }
    assert {name for name in ours if name not in on_it} <= {
        "penstock_stream_running",
        "penstock_last_batch_timestamp_seconds",
    }


def test_every_alert_says_what_to_do_and_how_grave_it_is() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert {"summary", "description"} <= rule["annotations"].keys()
    assert len({rule["alert"] for rule in rules()}) == len(rules())


def test_prometheus_is_pointed_at_the_hosts_own_port_and_the_rules() -> None:
    config = yaml.safe_load((FOLDER / "prometheus.yaml").read_text("utf-8"))
    (job,) = config["scrape_configs"]
    assert job["static_configs"][0]["targets"] == [f"127.0.0.1:{load_settings().settings.host.metrics_port}"]
    assert [(FOLDER / name).exists() for name in config["rule_files"]] == [True]


def test_panels_do_not_cover_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert all(x < 24 for x, _ in cells)
        taken |= cells


def test_what_is_drawn_with_one_unit_is_of_one_kind() -> None:
    for panel in panels():
        other = {
            override["matcher"]["options"]
            for override in panel["fieldConfig"]["overrides"]
            if override["matcher"]["id"] == "byFrameRefID"
        }
        drawn = [target["expr"] for target in panel["targets"] if target["refId"] not in other]
        assert len({"_bytes" in expression for expression in drawn}) == 1, panel["title"]
        assert (panel["fieldConfig"]["defaults"]["unit"] == "bytes") == ("_bytes" in drawn[0]), panel["title"]
