"""Invalid contracts and suites of a checkout affect only what needs them.

Processes use a copy of the catalog folders with invalid files.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock.ingestion
import penstock.quality
from penstock.engine.batch.input_watermarks import topic_of
from penstock.infra.local_broker import LocalBroker
from penstock.pipelines import catalog

ERRORS = {
    "clicks": "not valid YAML: expected the node content, but found the end of the file, at line 1",
    "cards": "The contract has an unknown key 'duration'",
    "topics/sensors": "action is 'explode'",
    "latest/sensor_minute": "contains unknown keys: kind",
}
AFFECTED_TOPICS = {"clicks", "cards", "sensors"}
"""The topics whose pipelines need one of these files."""

DESCRIBE_DEFINITIONS = """
import json
from penstock.pipelines import catalog
from penstock.platform.definitions.location import defs
from penstock.platform.services.stream_catalog import find_stream_error, list_stream_names
graph = defs.resolve_asset_graph()
print(json.dumps({
    "streams": {name: str(find_stream_error(name) or "") for name in list_stream_names()},
    "said": {key.to_user_string(): graph.get(key).description for key in graph.get_all_asset_keys()},
    "checks": {f"{key.asset_key.to_user_string()} {key.name}": graph.get_check_spec(key).description
               for key in graph.asset_check_keys},
}))
"""
RunPython = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run_python(tmp_path_factory: pytest.TempPathFactory) -> RunPython:
    """Run Python with a copy of contracts and suites, four of which are invalid."""
    folder = tmp_path_factory.mktemp("broken")
    for package in (penstock.ingestion, penstock.quality):
        package_folder = Path(str(package.__file__)).parent
        shutil.copytree(
            package_folder,
            folder / "penstock" / package_folder.name,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    contracts, suites = folder / "penstock/ingestion/catalog", folder / "penstock/quality/suites"
    (contracts / "clicks.yaml").write_text("topic: [")
    with (contracts / "cards.yaml").open("a") as cards:
        cards.write("duration: 10 seconds\n")
    (suites / "topics/sensors.yaml").write_text("expectations: [{type: expect_x, meta: {action: explode}}]")
    (suites / "latest/sensor_minute.yaml").write_text("expectations: [{kind: expect_x}]")
    environment = {
        "PENSTOCK_HOME": str(folder / "home"),
        "PYTHONPATH": str(folder),
        "PATH": os.environ["PATH"],
    }

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env={**environment, **more}, timeout=120
        )

    return run


def test_dagster_shows_invalid_files_with_the_reason(run_python: RunPython) -> None:
    result = run_python("-c", DESCRIBE_DEFINITIONS)
    assert result.returncode == 0, result.stderr
    described = json.loads(result.stdout)
    topics_by_pipeline = {
        name: {topic_of(source) for source in catalog.load_plan(name).sources}
        for name in catalog.pipeline_names()
    }
    affected = {name for name, topics in topics_by_pipeline.items() if topics & AFFECTED_TOPICS}
    assert affected != set(topics_by_pipeline), "some pipelines read none of these topics"
    failed = {name for name, problem in described["streams"].items() if problem}
    assert failed == affected | {"archive-clicks", "archive-cards"}
    assert ERRORS["clicks"] in described["streams"]["archive-clicks"]
    assert ERRORS["topics/sensors"] in described["streams"]["sensor_minute"]
    for topic in ("clicks", "cards"):
        assert ERRORS[topic] in described["said"][f"topics/{topic}"]
        assert ERRORS[topic] in described["checks"][f"topics/{topic} contract_valid"]
    assert ERRORS["topics/sensors"] in described["checks"]["topics/sensors suite_valid"]
    assert {f"raw/{topic}" for topic in AFFECTED_TOPICS} <= set(described["said"])
    assert {f"latest/{name}" for name in topics_by_pipeline if name not in affected} & set(described["said"])


def test_doctor_names_every_invalid_file(run_python: RunPython) -> None:
    result = run_python("-m", "penstock.platform.cli", "doctor", "--json")
    problems = [finding for finding in json.loads(result.stdout) if not finding["ok"]]
    assert result.returncode == 1
    for check_name, expected in (
        ("contracts", ("clicks", "cards")),
        ("suites", ("topics/sensors", "latest/sensor_minute")),
    ):
        details = "\n".join(finding["detail"] for finding in problems if finding["check"] == check_name)
        assert [subject for subject in expected if ERRORS[subject] not in details] == []


def test_commands_that_need_an_invalid_file_are_refused(run_python: RunPython) -> None:
    for arguments, expected in (
        (("explain", "sensor_minute"), ERRORS["topics/sensors"]),
        (("ingest", "clicks", "--count", "1"), ERRORS["clicks"]),
    ):
        result = run_python("-m", "penstock.platform.cli", *arguments)
        assert expected in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.kafka
def test_topics_with_invalid_contracts_are_excluded_from_the_plan(
    run_python: RunPython, broker: LocalBroker
) -> None:
    kafka_variables = {"PENSTOCK_KAFKA__BOOTSTRAP": broker.bootstrap}
    arguments = ("-m", "penstock.platform.cli", "topics", "plan")
    result = run_python(*arguments, "--json", **kafka_variables)
    findings = json.loads(result.stdout)
    assert result.returncode == 1
    assert set(findings["contract_errors"]) == {"clicks", "cards"}
    assert ERRORS["clicks"] in findings["contract_errors"]["clicks"]
    named_topics = {change["topic"] for change in findings["changes"]} | set(findings["undeclared"])
    assert not {
        topic for topic in named_topics if topic.removesuffix(".dead-letters") in findings["contract_errors"]
    }
    refused = run_python(*arguments, "--allow-destroy", "clicks", **kafka_variables)
    assert refused.returncode == 2
    assert ERRORS["clicks"] in refused.stderr
