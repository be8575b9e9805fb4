"""A contract or a suite that cannot be used, in a checkout: it holds up what needs it, and nothing else.

A copy of the folders that hold such files is broken, and used by processes in the place of the real one.
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

SAID = {
    "clicks": "not valid YAML: expected the node content, but found the end of the file, at line 1",
    "cards": "The contract has an unknown key 'duration'",
    "topics/sensors": "action is 'explode'",
    "latest/sensor_minute": "contains kind",
}
READ = {"clicks", "cards", "sensors"}
"""The topics whose pipelines need one of these files."""

LOOKING = """
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
Process = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Process:
    """Runs Python over a copy of contracts and suites, of which four are broken."""
    folder = tmp_path_factory.mktemp("broken")
    for package in (penstock.ingestion, penstock.quality):
        copied = Path(str(package.__file__)).parent
        shutil.copytree(
            copied, folder / "penstock" / copied.name, ignore=shutil.ignore_patterns("__pycache__")
        )
    contracts, suites = folder / "penstock/ingestion/catalog", folder / "penstock/quality/suites"
    (contracts / "clicks.yaml").write_text("topic: [")
    with (contracts / "cards.yaml").open("a") as cards:
        cards.write("duration: 10 seconds\n")
    (suites / "topics/sensors.yaml").write_text("expectations: [{type: expect_x, meta: {action: explode}}]")
    (suites / "latest/sensor_minute.yaml").write_text("expectations: [{kind: expect_x}]")
    told = {"PENSTOCK_HOME": str(folder / "home"), "PYTHONPATH": str(folder), "PATH": os.environ["PATH"]}

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *words]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env={**told, **more}, timeout=120
        )

    return run


def test_dagster_shows_what_is_broken_with_the_reason_and_all_else_as_it_is(process: Process) -> None:
    done = process("-c", LOOKING)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    needs = {
        name: {topic_of(source) for source in catalog.load_plan(name).sources}
        for name in catalog.pipeline_names()
    }
    broken = {name for name, topics in needs.items() if topics & READ}
    assert broken != set(needs), "some pipelines read none of these topics"
    failed = {name for name, problem in seen["streams"].items() if problem}
    assert failed == broken | {"archive-clicks", "archive-cards"}
    assert SAID["clicks"] in seen["streams"]["archive-clicks"]
    assert SAID["topics/sensors"] in seen["streams"]["sensor_minute"]
    for topic in ("clicks", "cards"):
        assert SAID[topic] in seen["said"][f"topics/{topic}"]
        assert SAID[topic] in seen["checks"][f"topics/{topic} contract_valid"]
    assert SAID["topics/sensors"] in seen["checks"]["topics/sensors suite_valid"]
    assert {f"raw/{topic}" for topic in READ} <= set(seen["said"])
    assert {f"latest/{name}" for name in needs if name not in broken} & set(seen["said"])


def test_doctor_names_every_such_file(process: Process) -> None:
    done = process("-m", "penstock.platform.cli", "doctor", "--json")
    found = {one["check"]: one for one in json.loads(done.stdout)}
    assert done.returncode == 1
    for what, said in (
        ("contracts", ("clicks", "cards")),
        ("suites", ("topics/sensors", "latest/sensor_minute")),
    ):
        assert not found[what]["ok"]
        assert all(SAID[each] in found[what]["detail"] for each in said)


def test_what_needs_such_a_file_is_refused_with_one_sentence(process: Process) -> None:
    for words, said in (
        (("explain", "sensor_minute"), SAID["topics/sensors"]),
        (("ingest", "clicks", "--count", "1"), SAID["clicks"]),
    ):
        done = process("-m", "penstock.platform.cli", *words)
        assert said in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.kafka
def test_topics_are_compared_but_for_those_that_cannot_be_read(process: Process, broker: LocalBroker) -> None:
    where = {"PENSTOCK_KAFKA__BOOTSTRAP": broker.bootstrap}
    words = ("-m", "penstock.platform.cli", "topics", "plan")
    done = process(*words, "--json", **where)
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert set(found["contract_errors"]) == {"clicks", "cards"}
    assert SAID["clicks"] in found["contract_errors"]["clicks"]
    spoken_of = {change["topic"] for change in found["changes"]} | set(found["undeclared"])
    assert not {
        topic for topic in spoken_of if topic.removesuffix(".dead-letters") in found["contract_errors"]
    }
    refused = process(*words, "--allow-destroy", "clicks", **where)
    assert refused.returncode == 2
    assert SAID["clicks"] in refused.stderr
