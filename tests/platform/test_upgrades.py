"""What an upgrade may take before anybody has looked at it."""

from contextlib import closing
from pathlib import Path

import pytest
from dagster import DagsterInstance

from penstock.pipelines import catalog
from penstock.pipelines.host.control import Desired, DesiredState
from penstock.pipelines.upgrade.classes import Class, Difference, Upgrade
from penstock.platform.control import open_control
from penstock.platform.definitions.replays import upgrade_job
from penstock.platform.errors import StackError, UpgradeRefusedError
from penstock.platform.settings import load_settings
from penstock.platform.upgrades import Cost, Planned, UpgradeOrder, check_accepted, upgrade

KEY = Difference("key", "device", "site", Class.REPLAY, "")
LATENESS = Difference("lateness", "2 hours", "1 hour", Class.COMPATIBLE, "")


def planned(*differences: Difference) -> Planned:
    return Planned("minute", Upgrade("minute", differences), "topic", Cost(3, 700, 1_000, None))


def test_what_takes_more_than_was_accepted_is_refused_with_what_it_would_take() -> None:
    with pytest.raises(UpgradeRefusedError) as refused:
        check_accepted(planned(LATENESS, KEY), Class.MIGRATABLE)
    said = str(refused.value)
    assert "It is replay: the state does not fit" in said
    assert "(key was device, is site)" in said, "and what was accepted is not among the reasons"
    assert said.endswith("to have it done, accept replay")


@pytest.mark.parametrize("accept", [Class.COMPATIBLE, Class.MIGRATABLE, Class.REPLAY])
def test_what_takes_no_more_is_done(accept: Class) -> None:
    check_accepted(planned(), accept)
    check_accepted(planned(LATENESS), accept)
    check_accepted(Planned("minute", None, "topic", Cost(0, 0, 0, None)), accept)


@pytest.mark.parametrize(
    ("given", "accepted"),
    [
        ({}, Class.COMPATIBLE),
        ({"accept": "migratable"}, Class.MIGRATABLE),
        ({"accept": "replay"}, Class.REPLAY),
    ],
)
def test_a_launch_with_a_name_alone_replays_nothing(given: dict[str, str], accepted: Class) -> None:
    orders: list[UpgradeOrder] = []

    def run(order: UpgradeOrder, tell: object) -> Planned:
        orders.append(order)
        return planned(LATENESS)

    with DagsterInstance.ephemeral() as instance:
        job = upgrade_job(catalog.names(), run)
        config = {"stream": "sensor_minute", **given}
        assert job.execute_in_process(run_config=config, instance=instance).success
    assert orders == [UpgradeOrder("sensor_minute", accept=accepted)]


def test_an_upgrade_leaves_a_stream_paused_that_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    monkeypatch.setattr("penstock.platform.upgrades.plan_upgrade", lambda *_: planned(LATENESS))
    with closing(open_control(f"sqlite:///{tmp_path}/control.db")) as store:
        store.desire("minute", Desired.PAUSED, 0)
        with pytest.raises(StackError, match="minute was not paused after 0 s"):
            upgrade(load_settings().settings, store, UpgradeOrder("minute", wait_seconds=0.0), lambda _: None)
        assert store.desired()["minute"] == DesiredState("minute", Desired.PAUSED, 2), (
            "it is begun anew, as it was"
        )
