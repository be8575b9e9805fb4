"""The environment `docker`, with a program in place of Docker that records its arguments."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.infra.environments.environment_copies import INFRA, copy_environments

from penstock.infra.environments.outputs import parse_outputs
from penstock.infra.terraform import PlanAction, TerraformWorkspace, embedded_engine
from penstock.infra.terraform.errors import ApplyFailedError, PlanFailedError

pytestmark = pytest.mark.whole


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    copy_environments(tmp_path)
    shutil.copytree(INFRA.parent / "docker", tmp_path / "docker")
    (tmp_path / "docker" / "secrets" / "control_store").write_text("canary-91c2")
    return tmp_path


@pytest.fixture
def call_log(tmp_path: Path) -> Path:
    return tmp_path / "asked"


@pytest.fixture
def open_workspace(checkout: Path, call_log: Path) -> Callable[..., TerraformWorkspace]:
    engine = checkout / "engine"
    engine.write_text(
        f'#!/bin/sh\necho "$*" >> {call_log}\n[ ! -e {checkout}/broken ] || {{ echo no engine >&2; exit 1; }}\n'
    )
    engine.chmod(0o755)

    def workspace(**variables: object) -> TerraformWorkspace:
        return TerraformWorkspace(
            checkout / "infra" / "environments" / "docker",
            checkout / "work",
            embedded_engine(),
            variables={"docker": str(engine)} | variables,
        )

    return workspace


def test_apply_starts_the_stack_and_a_second_plan_is_empty(
    open_workspace: Callable[..., TerraformWorkspace], call_log: Path, checkout: Path
) -> None:
    stack = open_workspace()
    stack.apply(stack.plan())
    file = f"{checkout}/docker/compose.yaml"
    assert (
        call_log.read_text() == f"compose --file {file} up --detach --wait --build --scale spark-worker=2\n"
    )
    assert stack.plan().is_empty
    outputs = parse_outputs(stack.read_outputs())
    assert outputs.kafka.bootstrap == "kafka-1:9092,kafka-2:9092,kafka-3:9092"
    assert outputs.control_store.secret == f"{checkout}/docker/secrets/control_store"


def test_more_workers_scale_the_stack_without_stopping_it(
    open_workspace: Callable[..., TerraformWorkspace], call_log: Path
) -> None:
    open_workspace().apply(open_workspace().plan())
    call_log.unlink()
    scaled_up = open_workspace(workers=4)
    plan = scaled_up.plan()
    assert {c.address: c.action for c in plan.changes} == {
        "module.stack.terraform_data.running": PlanAction.REPLACE
    }
    scaled_up.apply(plan)
    assert call_log.read_text().endswith("--scale spark-worker=4\n")
    assert "down" not in call_log.read_text()


IMAGE_FILES = (
    "docker/host.Dockerfile",
    "docker/dagster.lock",
    "docker/postgres/dagster.sql",
    "requirements.lock",
    "infra/build.lock",
    "pipelines/penstock/engine/engine.py",
)


def test_a_changed_image_file_changes_the_plan(
    open_workspace: Callable[..., TerraformWorkspace], checkout: Path
) -> None:
    source = checkout / "pipelines" / "penstock" / "engine"
    (source / "__pycache__").mkdir(parents=True)
    (source / "engine.py").touch()
    (checkout / "requirements.lock").touch()
    (checkout / "infra").mkdir(exist_ok=True)
    (checkout / "infra" / "build.lock").touch()
    open_workspace().apply(open_workspace().plan())
    (source / "__pycache__" / "engine.pyc").write_text("made by running it")
    assert open_workspace().plan().is_empty
    for file in IMAGE_FILES:
        before = (checkout / file).read_text()
        (checkout / file).write_text(f"{before}# another line\n")
        assert [change.address for change in open_workspace().plan().changes] == [
            "module.stack.terraform_data.running"
        ], file
        (checkout / file).write_text(before)


def test_destroy_removes_the_stack_and_its_volumes(
    open_workspace: Callable[..., TerraformWorkspace], call_log: Path
) -> None:
    open_workspace().apply(open_workspace().plan())
    call_log.unlink()
    open_workspace().apply(open_workspace().plan(destroy=True))
    assert call_log.read_text().endswith("down --volumes\n")


def test_a_missing_password_fails_the_plan(
    open_workspace: Callable[..., TerraformWorkspace], checkout: Path, call_log: Path
) -> None:
    (checkout / "docker" / "secrets" / "control_store").unlink()
    with pytest.raises(PlanFailedError, match="write one into"):
        open_workspace().plan()
    assert not call_log.exists()


def test_a_failed_engine_is_reported(
    open_workspace: Callable[..., TerraformWorkspace], checkout: Path
) -> None:
    (checkout / "broken").touch()
    with pytest.raises(ApplyFailedError, match="no engine") as caught:
        open_workspace().apply(open_workspace().plan())
    assert caught.value.resources == ("module.stack.terraform_data.running",)


def test_the_password_is_in_neither_state_nor_plan(
    open_workspace: Callable[..., TerraformWorkspace], checkout: Path
) -> None:
    stack = open_workspace()
    plan = stack.plan()
    contents = [path.read_bytes() for path in stack.saved_plans.directory.rglob("*") if path.is_file()]
    stack.apply(plan)
    contents += [path.read_bytes() for path in (checkout / ".penstock").rglob("*") if path.is_file()]
    assert len(contents) >= 3
    assert not [text for text in contents if b"canary-91c2" in text]
