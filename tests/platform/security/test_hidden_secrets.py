"""Secrets in every setting, searched for in what commands print and write."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.infra.environments.secret_search import find_files_with_values

from penstock.infra.ports import find_free_ports
from penstock.platform.cli.main import main
from penstock.platform.errors import SettingsError
from penstock.platform.settings import load_settings
from penstock.platform.settings.naming import iter_secret_settings, variable_name
from penstock.platform.stack.programs import stack_programs

CANARY = "canary-5e4c"
ADDRESSES = {
    "kafka.registry": "http://u:canary-5e4c@127.0.0.1:{port}",
    "warehouse_store.endpoint": "http://u:canary-5e4c@127.0.0.1:{port}",
    "lineage.to": "https://u:canary-5e4c@127.0.0.1:{port}",
}
COMMANDS = (
    ("status", "--settings"),
    ("status", "--settings", "--json"),
    ("doctor",),
    ("topics", "plan"),
    ("stream", "start", "sensor_minute", "--wait", "0"),
)


@pytest.fixture
def secrets(tmp_path: Path) -> Mapping[str, str]:
    """Variables that set every secret, by files or by further variables, and passwords in database URLs."""
    (port,) = find_free_ports(1)
    variables = {"PENSTOCK_HOME": str(tmp_path / "home"), "CANARY_VARIABLE": CANARY}
    for number, name in enumerate(iter_secret_settings()):
        file = tmp_path / "secrets" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"https://127.0.0.1/{CANARY}" if name == "alerts.webhook" else CANARY)
        is_variable = number % 2 and name != "alerts.webhook"
        variables[variable_name(name)] = "env:CANARY_VARIABLE" if is_variable else f"file:{file}"
    database = f"postgresql://me:{CANARY}@127.0.0.1:{port}"
    return {
        **variables,
        "PENSTOCK_CONTROL_URL": f"{database}/control",
        "PENSTOCK_DAGSTER__STORAGE_URL": f"{database}/dagster",
        "PENSTOCK_KAFKA__REGISTRY": f"http://127.0.0.1:{port}",
        "PENSTOCK_KAFKA__BOOTSTRAP": f"127.0.0.1:{port}",
        "PENSTOCK_KAFKA__SECURITY__PROTOCOL": "SASL_SSL",
        "PENSTOCK_KAFKA__SECURITY__MECHANISM": "SCRAM-SHA-512",
    }


def test_the_known_secrets_are_marked() -> None:
    assert set(iter_secret_settings()) == {
        "alerts.webhook",
        "control_secret",
        "host.metrics_token",
        "kafka.registry_login",
        "kafka.security.secrets.host",
        "kafka.security.secrets.ingestion",
        "kafka.security.secrets.topics",
        "lineage.key",
        "spark.secret",
    }


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_or_writes_a_secret(
    command: tuple[str, ...],
    secrets: Mapping[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name, value in {**secrets, "PENSTOCK_ROOT": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["penstock", *command])
    with pytest.raises(SystemExit):
        main()
    printed = capfd.readouterr()
    assert printed.out + printed.err
    assert CANARY not in printed.out + printed.err
    written = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert find_files_with_values(written, [CANARY.encode()]) == []


def test_no_program_of_the_stack_is_given_a_secret(
    secrets: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    programs = stack_programs(load_settings().settings, [])
    specs = json.dumps([program.to_tether_spec(Path("state")).as_json() for program in programs])
    assert "PENSTOCK_ALERTS__WEBHOOK" in specs
    assert CANARY not in specs


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_log_in_inside_an_address_is_refused_without_showing_it(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    monkeypatch.setenv(variable_name(name), ADDRESSES[name].format(port=1))
    with pytest.raises(SettingsError, match=r"must not have a log-in in it") as refused:
        load_settings()
    assert CANARY not in str(refused.value)
    assert variable_name(name) in str(refused.value)


@pytest.mark.parametrize("name", list(iter_secret_settings()))
def test_a_plain_webhook_is_refused_without_showing_it(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    monkeypatch.setenv(variable_name(name), f"https://hooks.example/services/{CANARY}")
    with pytest.raises(SettingsError, match=r"write it into a file .* set file:PATH") as refused:
        load_settings()
    assert CANARY not in str(refused.value)
