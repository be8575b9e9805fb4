"""`penstock env`: plan, apply, drift, use and destroy of a small environment, by real Terraform."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from tests.platform.small_environment import OUTPUTS

from penstock.infra.environments.settings_file import apply_settings

pytestmark = pytest.mark.whole  # dozens of Terraform runs, a second each

MAIN = """
locals { there = fileexists("${path.root}/there") }
resource "terraform_data" "it" { triggers_replace = local.there }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_ROOT", str(tmp_path))
    environment = tmp_path / "infra" / "environments" / "small"
    environment.mkdir(parents=True)
    (environment / "main.tf").write_text(MAIN)
    (environment / "outputs.tf").write_text(OUTPUTS)
    return environment


def test_environments_are_listed(folder: Path, run) -> None:
    assert json.loads(run("env", "list", "--json").out) == ["small"]


def test_an_unknown_environment_is_refused_with_a_suggestion(folder: Path, run) -> None:
    result = run("env", "plan", "smell")
    assert result.code == 2
    assert "there is no environment 'smell'. Did you mean 'small'?" in result.err


def test_a_plan_is_shown_and_applied_by_its_id(folder: Path, run) -> None:
    shown = run("env", "plan", "small", "--json")
    assert shown.code == 1
    plan = json.loads(shown.out)
    assert plan["changes"] == [{"action": "create", "resource": "terraform_data.it", "why": ""}]
    assert run("env", "apply", "small", "--plan", plan["plan"], "--yes").code == 0
    assert run("env", "plan", "small").code == 0
    assert run("env", "apply", "small", "--plan", plan["plan"], "--yes").code == 1


def test_drift_exits_with_1_and_shows_the_differences(folder: Path, run) -> None:
    run("env", "apply", "small", "--yes")
    assert run("env", "drift", "small").code == 0
    (folder / "there").touch()
    result = run("env", "drift", "small")
    assert result.code == 1
    assert "terraform_data.it" in result.out
    assert "False -> True" in result.out


def test_env_use_writes_the_settings_of_the_environment(folder: Path, tmp_path: Path, run) -> None:
    run("env", "apply", "small", "--yes")
    assert run("env", "use", "small").code == 0
    file = tomllib.loads((tmp_path / "penstock.toml").read_text())
    assert file["kafka"] == {
        "bootstrap": "127.0.0.1:1",
        "layout": "local",
        "security": {"protocol": "PLAINTEXT"},
    }
    settings = {setting["name"]: setting for setting in json.loads(run("status", "--settings", "--json").out)}
    assert (settings["kafka.bootstrap"]["value"], settings["kafka.bootstrap"]["origin"]) == (
        "127.0.0.1:1",
        "file",
    )
    assert settings["warehouse"]["value"] == "/warehouse"
    assert run("env", "use", "--none").code == 0
    assert tomllib.loads((tmp_path / "penstock.toml").read_text()) == {}


@pytest.mark.parametrize(
    ("original", "changed", "reason"),
    [
        ('mechanism = ""', 'mechanism = "AWS_MSK_IAM"', "kafka.security.mechanism"),
        ("secrets = {}", 'secrets = { auditor = "/there" }', "kafka.security.secrets.auditor"),
    ],
)
def test_an_environment_with_invalid_settings_is_refused(
    folder: Path, tmp_path: Path, run, original: str, changed: str, reason: str
) -> None:
    (folder / "outputs.tf").write_text(OUTPUTS.replace(original, changed))
    (tmp_path / "penstock.toml").write_text("[feed]\nrate = 1.0\n")
    run("env", "apply", "small", "--yes")
    result = run("env", "use", "small")
    assert result.code == 2
    assert "the settings of environment small are invalid" in result.err
    assert reason in result.err
    assert (tmp_path / "penstock.toml").read_text() == "[feed]\nrate = 1.0\n"


def test_env_use_none_removes_invalid_settings(folder: Path, tmp_path: Path, run) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(
        apply_settings("[feed]\nrate = 1.0\n", {"kafka.security.mechanism": "NONE_SUCH"}, "small")
    )
    assert run("status").code == 2
    assert run("env", "use", "--none").code == 0
    assert file.read_text() == "[feed]\nrate = 1.0\n"


def test_env_use_needs_a_name_or_none(folder: Path, run) -> None:
    assert run("env", "use").code == 2
    assert run("env", "use", "small", "--none").code == 2


def test_env_destroy_removes_everything(folder: Path, run) -> None:
    run("env", "apply", "small", "--yes")
    assert run("env", "destroy", "small", "--yes").code == 0
    result = run("env", "drift", "small")
    assert result.code == 1
    assert "was not applied" in result.err


def test_a_plan_without_priced_resources_costs_nothing(folder: Path, run) -> None:
    result = run("env", "cost", "small")
    assert result.code == 0
    assert result.out.splitlines()[0] == "no resource of the plan has a price"
