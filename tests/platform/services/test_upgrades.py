"""Accepted and refused upgrades."""

from contextlib import closing
from pathlib import Path

import pytest
from dagster import DagsterInstance

from penstock.engine.host.control import DesiredRunState, DesiredState
from penstock.engine.upgrade.upgrade_class import PlanDifference, PlanUpgrade, UpgradeClass
from penstock.pipelines import catalog
from penstock.platform.control import open_control_store
from penstock.platform.definitions.run_actions import RunActions
from penstock.platform.definitions.streams.history_jobs import build_upgrade_job
from penstock.platform.errors import StackError, UpgradeRefusedError
from penstock.platform.services.operator_actions import read_actions
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


def build_upgrade_plan(*differences: PlanDifference) -> UpgradePlan:
    return UpgradePlan(
        "minute", PlanUpgrade("minute", differences), "topic", UpgradeCost(3, 700, 1_000, None)
    )


def test_an_upgrade_beyond_the_accepted_class_is_refused() -> None:
    with pytest.raises(UpgradeRefusedError) as refused:
        check_upgrade_accepted(build_upgrade_plan(LATENESS, KEY), UpgradeClass.MIGRATABLE)
    message = str(refused.value)
    assert "replay: the state does not fit" in message
    assert "(key: device -> site)" in message, "accepted differences are no reasons"
    assert message.endswith("accept replay to apply it")


@pytest.mark.parametrize("accept", [UpgradeClass.COMPATIBLE, UpgradeClass.MIGRATABLE, UpgradeClass.REPLAY])
def test_an_upgrade_within_the_accepted_class_passes(accept: UpgradeClass) -> None:
    check_upgrade_accepted(build_upgrade_plan(), accept)
    check_upgrade_accepted(build_upgrade_plan(LATENESS), accept)
    check_upgrade_accepted(UpgradePlan("minute", None, "topic", UpgradeCost(0, 0, 0, None)), accept)


@pytest.mark.parametrize(
    ("config_options", "accepted"),
    [
        ({}, UpgradeClass.COMPATIBLE),
        ({"accept": "migratable"}, UpgradeClass.MIGRATABLE),
        ({"accept": "replay"}, UpgradeClass.REPLAY),
    ],
)
def test_a_launch_without_options_accepts_no_replay(
    config_options: dict[str, str], accepted: UpgradeClass, tmp_path: Path
) -> None:
    requests: list[UpgradeRequest] = []

    def run(request: UpgradeRequest, report: object) -> UpgradePlan:
        requests.append(request)
        return build_upgrade_plan(LATENESS)

    with DagsterInstance.ephemeral() as instance:
        job = build_upgrade_job(catalog.pipeline_names(), RunActions(tmp_path), run)
        config = {"stream": "sensor_minute", **config_options}
        assert job.execute_in_process(run_config=config, instance=instance).success
    assert requests == [UpgradeRequest("sensor_minute", accept=accepted)]
    (action,) = read_actions(tmp_path)
    assert (action.action, action.target, action.origin) == ("stream upgrade", "sensor_minute", "dagster")
    assert action.details["accept"] == accepted.label


def test_an_upgrade_keeps_a_paused_stream_paused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    monkeypatch.setattr(
        "penstock.platform.services.upgrades.plan_upgrade", lambda *_: build_upgrade_plan(LATENESS)
    )
    with closing(open_control_store(f"sqlite:///{tmp_path}/control.db")) as store:
        store.set_desired_state("minute", DesiredRunState.PAUSED, 0)
        with pytest.raises(StackError, match="minute is not paused after 0 s"):
            upgrade_stream(
                load_settings().settings, store, UpgradeRequest("minute", wait_seconds=0.0), lambda _: None
            )
        assert store.read_desired_states()["minute"] == DesiredState("minute", DesiredRunState.PAUSED, 2), (
            "it is started again, paused"
        )
