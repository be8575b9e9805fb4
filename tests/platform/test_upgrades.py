"""What an upgrade may take before anybody has looked at it."""

from contextlib import closing
from pathlib import Path

import pytest
from dagster import DagsterInstance

from penstock.engine.host.control import DesiredRunState, DesiredState
from penstock.engine.upgrade.upgrade_class import PlanDifference, PlanUpgrade, UpgradeClass
from penstock.pipelines import catalog
from penstock.platform.control import open_control_store
from penstock.platform.definitions.streams.history_jobs import build_upgrade_job
from penstock.platform.errors import StackError, UpgradeRefusedError
from penstock.platform.services.upgrades import (
    UpgradeCost,
    UpgradePlan,
    UpgradeRequest,
    check_upgrade_accepted,
    upgrade_stream,
)
from penstock.platform.settings import load_settings

KEY = PlanDifference("key", "device", "site", UpgradeClass.REPLAY, "")
LATENESS = PlanDifference("lateness", "2 hours", "1 hour", UpgradeClass.COMPATIBLE, "")


def planned(*differences: PlanDifference) -> UpgradePlan:
    return UpgradePlan(
        "minute", PlanUpgrade("minute", differences), "topic", UpgradeCost(3, 700, 1_000, None)
    )


def test_what_takes_more_than_was_accepted_is_refused_with_what_it_would_take() -> None:
    with pytest.raises(UpgradeRefusedError) as refused:
        check_upgrade_accepted(planned(LATENESS, KEY), UpgradeClass.MIGRATABLE)
    said = str(refused.value)
    assert "replay: the state does not fit" in said
    assert "(key: device -> site)" in said, "and what was accepted is not among the reasons"
    assert said.endswith("accept replay to apply it")


@pytest.mark.parametrize("accept", [UpgradeClass.COMPATIBLE, UpgradeClass.MIGRATABLE, UpgradeClass.REPLAY])
def test_what_takes_no_more_is_done(accept: UpgradeClass) -> None:
    check_upgrade_accepted(planned(), accept)
    check_upgrade_accepted(planned(LATENESS), accept)
    check_upgrade_accepted(UpgradePlan("minute", None, "topic", UpgradeCost(0, 0, 0, None)), accept)


@pytest.mark.parametrize(
    ("given", "accepted"),
    [
        ({}, UpgradeClass.COMPATIBLE),
        ({"accept": "migratable"}, UpgradeClass.MIGRATABLE),
        ({"accept": "replay"}, UpgradeClass.REPLAY),
    ],
)
def test_a_launch_with_a_name_alone_replays_nothing(given: dict[str, str], accepted: UpgradeClass) -> None:
    orders: list[UpgradeRequest] = []

    def run(order: UpgradeRequest, tell: object) -> UpgradePlan:
        orders.append(order)
        return planned(LATENESS)

    with DagsterInstance.ephemeral() as instance:
        job = build_upgrade_job(catalog.pipeline_names(), run)
        config = {"stream": "sensor_minute", **given}
        assert job.execute_in_process(run_config=config, instance=instance).success
    assert orders == [UpgradeRequest("sensor_minute", accept=accepted)]


def test_an_upgrade_leaves_a_stream_paused_that_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    monkeypatch.setattr("penstock.platform.services.upgrades.plan_upgrade", lambda *_: planned(LATENESS))
    with closing(open_control_store(f"sqlite:///{tmp_path}/control.db")) as store:
        store.set_desired_state("minute", DesiredRunState.PAUSED, 0)
        with pytest.raises(StackError, match="minute is not paused after 0 s"):
            upgrade_stream(
                load_settings().settings, store, UpgradeRequest("minute", wait_seconds=0.0), lambda _: None
            )
        assert store.read_desired_states()["minute"] == DesiredState("minute", DesiredRunState.PAUSED, 2), (
            "it is begun anew, as it was"
        )
