"""`penstock audit` and Dagster's check on damaged tables, with a real broker.

The topic is empty, as if its records had expired, so that Spark need not recompute anything.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from dagster import AssetSpec, DagsterInstance, Definitions
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLAN, run_batches
from tests.quality.audit.table_damage import DAMAGES

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.host.control_reporter import to_batch_record
from penstock.infra.local_broker import LocalBroker
from penstock.platform.control import open_control_store
from penstock.platform.definitions.asset_keys import stream_key
from penstock.platform.definitions.streams.audit_checks import (
    ACCOUNTED_FOR_CHECK,
    AUDIT_JOB,
    build_audit_definitions,
)
from penstock.platform.services import audit
from penstock.platform.settings import load_settings
from penstock.quality.audit.comparability import Sample

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def recorded_home(broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with a stream of six batches."""
    broker.create_topic("records", 2)
    bench = Bench(PLAN, tmp_path_factory.mktemp("lived"))
    run_batches(bench)
    home = tmp_path_factory.mktemp("homes") / "lived"
    shutil.copytree(bench.folder / "warehouse", home / "warehouse")
    shutil.copytree(bench.folder / "stream", home / "streams" / "stream")
    store = open_control_store(f"sqlite:///{home}/control.db")
    for outcome in BatchJournal(home / "streams" / "stream" / "journal").read_outcomes():
        store.record_batch(to_batch_record("stream", outcome))
    store.close()
    return home


@pytest.fixture
def home_copy(recorded_home: Path, home: Path, broker: LocalBroker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the home folder, and a catalog that lists the stream."""
    shutil.copytree(recorded_home, home)
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", broker.bootstrap)
    monkeypatch.setattr(audit, "check_pipeline_exists", lambda _name: None)
    monkeypatch.setattr(audit, "load_plan", {"stream": PLAN}.__getitem__)
    return home


def test_an_undamaged_stream_exits_with_0(run: Callable, home_copy: Path) -> None:
    result = run("audit", "stream", "--json")
    states = {verdict["check"]: verdict["state"] for verdict in json.loads(result.out)["verdicts"]}
    assert (result.code, {check for check, state in states.items() if state == "failed"}) == (0, set())
    unproven = {check for check, state in states.items() if state == "unproven"}
    assert unproven == {"delivery records", "archive records", "reading records", "results"}


@pytest.mark.parametrize("name", sorted(DAMAGES))
def test_each_damage_exits_with_1_and_fails_the_dagster_check(
    run: Callable, home_copy: Path, name: str
) -> None:
    damage = DAMAGES[name]
    damage.apply(home_copy / "warehouse")
    result = run("audit", "stream", "--json")
    verdicts = {verdict["check"]: verdict for verdict in json.loads(result.out)["verdicts"]}
    assert result.code == 1
    assert verdicts[damage.check]["state"] == "failed"
    assert verdicts[damage.check]["summary"].startswith(damage.message)
    evaluation = evaluate_dagster_check()
    assert not evaluation.passed
    assert evaluation.description == f"first difference at {first_difference(verdicts)}"


def first_difference(verdicts: dict[str, dict]) -> str:
    return next(verdict["summary"] for verdict in verdicts.values() if verdict["state"] == "failed")


def evaluate_dagster_check():
    settings = load_settings().settings
    audit_definitions = build_audit_definitions(
        ["stream"], lambda name: audit.audit_stream(settings, name, Sample(), lambda _: None)
    )
    defs = Definitions.merge(Definitions(assets=[AssetSpec(stream_key("stream"))]), audit_definitions)
    with DagsterInstance.ephemeral() as instance:
        job_result = defs.resolve_job_def(AUDIT_JOB).execute_in_process(instance=instance)
        (evaluation,) = job_result.get_asset_check_evaluations()
    assert evaluation.check_name == ACCOUNTED_FOR_CHECK
    return evaluation
