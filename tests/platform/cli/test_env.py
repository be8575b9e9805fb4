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


def test_a_name_that_is_none_is_told_those_that_are(folder: Path, run) -> None:
    answer = run("env", "plan", "smell")
    assert answer.code == 2
    assert "there is no environment 'smell'. Did you mean 'small'?" in answer.err


def test_a_plan_is_shown_and_applied_by_its_id(folder: Path, run) -> None:
    shown = run("env", "plan", "small", "--json")
    assert shown.code == 1
    plan = json.loads(shown.out)
    assert plan["changes"] == [{"action": "create", "resource": "terraform_data.it", "why": ""}]
    assert run("env", "apply", "small", "--plan", plan["plan"], "--yes").code == 0
    assert run("env", "plan", "small").code == 0
    assert run("env", "apply", "small", "--plan", plan["plan"], "--yes").code == 1


def test_drift_ends_with_one_and_says_what_differs(folder: Path, run) -> None:
    run("env", "apply", "small", "--yes")
    assert run("env", "drift", "small").code == 0
    (folder / "there").touch()
    answer = run("env", "drift", "small")
    assert answer.code == 1
    assert "terraform_data.it" in answer.out
    assert "False -> True" in answer.out


def test_using_an_environment_sets_the_platforms_settings(folder: Path, tmp_path: Path, run) -> None:
    run("env", "apply", "small", "--yes")
    assert run("env", "use", "small").code == 0
    file = tomllib.loads((tmp_path / "penstock.toml").read_text())
    assert file["kafka"] == {
        "bootstrap": "127.0.0.1:1",
        "layout": "local",
        "security": {"protocol": "PLAINTEXT"},
    }
    told = {one["name"]: one for one in json.loads(run("status", "--settings", "--json").out)}
    assert (told["kafka.bootstrap"]["value"], told["kafka.bootstrap"]["origin"]) == ("127.0.0.1:1", "file")
    assert told["warehouse"]["value"] == "/warehouse"
    assert run("env", "use", "--none").code == 0
    assert tomllib.loads((tmp_path / "penstock.toml").read_text()) == {}


@pytest.mark.parametrize(
    ("there", "other", "reason"),
    [
        ('mechanism = ""', 'mechanism = "AWS_MSK_IAM"', "kafka.security.mechanism"),
        ("secrets = {}", 'secrets = { auditor = "/there" }', "kafka.security.secrets.auditor"),
    ],
)
def test_an_environment_that_the_settings_do_not_take_is_refused_and_nothing_is_written(
    folder: Path, tmp_path: Path, run, there: str, other: str, reason: str
) -> None:
    (folder / "outputs.tf").write_text(OUTPUTS.replace(there, other))
    (tmp_path / "penstock.toml").write_text("[feed]\nrate = 1.0\n")
    run("env", "apply", "small", "--yes")
    answer = run("env", "use", "small")
    assert answer.code == 2
    assert "the settings of environment small are invalid" in answer.err
    assert reason in answer.err
    assert (tmp_path / "penstock.toml").read_text() == "[feed]\nrate = 1.0\n"


def test_using_none_is_the_way_back_from_lines_that_no_command_can_use(
    folder: Path, tmp_path: Path, run
) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(
        apply_settings("[feed]\nrate = 1.0\n", {"kafka.security.mechanism": "NONE_SUCH"}, "small")
    )
    assert run("status").code == 2
    assert run("env", "use", "--none").code == 0
    assert file.read_text() == "[feed]\nrate = 1.0\n"


def test_using_needs_a_name_or_none(folder: Path, run) -> None:
    assert run("env", "use").code == 2
    assert run("env", "use", "small", "--none").code == 2


def test_destroying_removes_everything(folder: Path, run) -> None:
    run("env", "apply", "small", "--yes")
    assert run("env", "destroy", "small", "--yes").code == 0
    answer = run("env", "drift", "small")
    assert answer.code == 1
    assert "was not applied" in answer.err


def test_what_has_no_price_costs_nothing(folder: Path, run) -> None:
    answer = run("env", "cost", "small")
    assert answer.code == 0
    assert answer.out.splitlines()[0] == "no resource of the plan has a price"
