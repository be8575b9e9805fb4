"""Checks before the stack starts, and their messages."""

import os
import re
import socket
from contextlib import closing
from pathlib import Path

import pytest

from penstock.engine.host.control import DesiredRunState
from penstock.infra.errors import JavaMissingError
from penstock.infra.ports import find_free_ports
from penstock.platform.control import open_control_store
from penstock.platform.doctor.installation_checks import REQUIRED_FREE_MB, check_disk_space
from penstock.platform.errors import PortTakenError, RequirementError, SettingsError
from penstock.platform.settings import Settings, load_settings
from penstock.platform.stack.manager import stack_manager
from penstock.platform.stack.preflight import check_machine, check_ports
from penstock.platform.stack.startup import check_stream_names, set_initial_desired

PORTS = (
    "KAFKA__PORT",
    "KAFKA__CONTROLLER_PORT",
    "HOST__METRICS_PORT",
    "CONSOLE__PORT",
    "DAGSTER__PORT",
    "DAGSTER__CODE_PORT",
)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    for name, port in zip(PORTS, find_free_ports(len(PORTS)), strict=True):
        monkeypatch.setenv(f"PENSTOCK_{name}", str(port))
    return load_settings().settings


def test_free_ports_pass(settings: Settings) -> None:
    check_ports(settings, stack_manager(settings))


@pytest.mark.parametrize(
    ("name", "variable", "purpose"),
    [
        ("kafka.port", "PENSTOCK_KAFKA__PORT", "the broker"),
        ("dagster.port", "PENSTOCK_DAGSTER__PORT", "Dagster's webserver"),
        ("host.metrics_port", "PENSTOCK_HOST__METRICS_PORT", "the stream host's metrics"),
    ],
)
def test_a_port_in_use_is_named_with_its_process_and_variable(
    name: str, variable: str, purpose: str, settings: Settings
) -> None:
    port = settings.ports[name]
    with closing(socket.create_server(("127.0.0.1", port))):
        expected = (
            rf"Port {port} .*{re.escape(purpose)}.*used by process {os.getpid()}.*{variable}=PORT penstock up"
        )
        with pytest.raises(PortTakenError, match=expected):
            check_ports(settings, stack_manager(settings))


def test_ports_of_an_unused_local_broker_are_not_checked(settings: Settings) -> None:
    kafka = settings.kafka.model_copy(update={"bootstrap": "127.0.0.1:1"})
    with closing(socket.create_server(("127.0.0.1", settings.kafka.port))):
        check_ports(settings.model_copy(update={"kafka": kafka}), stack_manager(settings))


def test_a_machine_without_java_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.platform.stack.preflight.find_java", raise_java_missing)
    with pytest.raises(JavaMissingError):
        check_machine(settings)
    assert not settings.home.exists()


def raise_java_missing() -> None:
    raise JavaMissingError("Java 17 or newer is needed and was not found")


def test_too_little_disk_space_is_refused_with_the_required_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 5_000_000})()
    monkeypatch.setattr("shutil.disk_usage", lambda _folder: usage)
    with pytest.raises(
        RequirementError, match=rf"has 5 MB free, and {REQUIRED_FREE_MB} MB are needed.*PENSTOCK_HOME"
    ):
        check_disk_space(tmp_path)


def test_a_home_that_cannot_be_created_is_refused(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    blocked_settings = settings.model_copy(update={"home": tmp_path / "file" / "home"})
    with pytest.raises(RequirementError, match=r"cannot be created .*PENSTOCK_HOME"):
        check_machine(blocked_settings)


def test_a_new_stack_requests_its_streams_except_stopped_ones(
    settings: Settings,
) -> None:
    store = open_control_store(settings.control_url)
    store.set_desired_state("stopped", DesiredRunState.STOPPED, 0)
    set_initial_desired(store, ["fresh", "stopped"])
    set_initial_desired(store, ["fresh", "stopped"])
    states = {name: (state.desired, state.revision) for name, state in store.read_desired_states().items()}
    assert states == {"fresh": (DesiredRunState.RUNNING, 1), "stopped": (DesiredRunState.STOPPED, 1)}
    store.close()


def test_a_nightly_backfill_of_an_unknown_stream_is_refused() -> None:
    check_stream_names("dagster.nightly_backfills", ["one"], ["one", "two"])
    with pytest.raises(SettingsError, match=r"nightly_backfills: there is no stream 'three'.* one, two"):
        check_stream_names("dagster.nightly_backfills", ["one", "three"], ["one", "two"])
