"""`penstock audit`, and Dagster's check, on real tables and a real broker: each damage ends with 1, and its place.

The topic is empty, as one is whose records have expired, so that nothing has to be computed again by Spark.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from dagster import AssetSpec, DagsterInstance, Definitions
from tests.pipelines.engine.batch.stored import Bench
from tests.pipelines.engine.batch.test_crashes import PLAN, Fuse
from tests.pipelines.engine.batch.test_crashes import run as live
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
def lived(broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder in which a stream has lived for six batches."""
    broker.create_topic("records", 2)
    bench = Bench(PLAN, tmp_path_factory.mktemp("lived"))
    live(bench, Fuse(-1))
    home = tmp_path_factory.mktemp("homes") / "lived"
    shutil.copytree(bench.folder / "warehouse", home / "warehouse")
    shutil.copytree(bench.folder / "stream", home / "streams" / "stream")
    store = open_control_store(f"sqlite:///{home}/control.db")
    for outcome in BatchJournal(home / "streams" / "stream" / "journal").read_outcomes():
        store.record_batch(to_batch_record("stream", outcome))
    store.close()
    return home


@pytest.fixture
def copied(lived: Path, home: Path, broker: LocalBroker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same for a test of its own, of a catalog that has the stream."""
    shutil.copytree(lived, home)
    monkeypatch.setenv("PENSTOCK_KAFKA__BOOTSTRAP", broker.bootstrap)
    monkeypatch.setattr(audit, "check_pipeline_exists", lambda _name: None)
    monkeypatch.setattr(audit, "load_plan", {"stream": PLAN}.__getitem__)
    return home


def test_a_stream_without_damage_ends_with_zero(run: Callable, copied: Path) -> None:
    answer = run("audit", "stream", "--json")
    told = {one["check"]: one["state"] for one in json.loads(answer.out)["verdicts"]}
    assert (answer.code, {check for check, state in told.items() if state == "failed"}) == (0, set())
    unproven = {check for check, state in told.items() if state == "unproven"}
    assert unproven == {"delivery records", "archive records", "reading records", "results"}


@pytest.mark.parametrize("name", sorted(DAMAGES))
def test_each_kind_of_damage_ends_with_one_and_its_place_and_fails_dagsters_check(
    run: Callable, copied: Path, name: str
) -> None:
    damage = DAMAGES[name]
    damage.apply(copied / "warehouse")
    answer = run("audit", "stream", "--json")
    told = {one["check"]: one for one in json.loads(answer.out)["verdicts"]}
    assert answer.code == 1
    assert told[damage.check]["state"] == "failed"
    assert told[damage.check]["summary"].startswith(damage.message)
    evaluation = checked_by_dagster()
    assert not evaluation.passed
    assert evaluation.description == f"first difference at {first_of(told)}"


def first_of(told: dict[str, dict]) -> str:
    return next(one["summary"] for one in told.values() if one["state"] == "failed")


def checked_by_dagster():
    settings = load_settings().settings
    asked = build_audit_definitions(
        ["stream"], lambda name: audit.audit_stream(settings, name, Sample(), lambda _: None)
    )
    defs = Definitions.merge(Definitions(assets=[AssetSpec(stream_key("stream"))]), asked)
    with DagsterInstance.ephemeral() as instance:
        done = defs.resolve_job_def(AUDIT_JOB).execute_in_process(instance=instance)
        (evaluation,) = done.get_asset_check_evaluations()
    assert evaluation.check_name == ACCOUNTED_FOR_CHECK
    return evaluation
