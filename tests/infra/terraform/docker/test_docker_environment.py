"""The environment `docker`: what it asks of the engine. A program that writes down its arguments stands in."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.infra.terraform.checkouts import INFRA, copy_environments

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
def asked(tmp_path: Path) -> Path:
    return tmp_path / "asked"


@pytest.fixture
def make(checkout: Path, asked: Path) -> Callable[..., TerraformWorkspace]:
    engine = checkout / "engine"
    engine.write_text(
        f'#!/bin/sh\necho "$*" >> {asked}\n[ ! -e {checkout}/broken ] || {{ echo no engine >&2; exit 1; }}\n'
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


def test_apply_brings_the_stack_up_and_a_second_plan_is_empty(
    make: Callable[..., TerraformWorkspace], asked: Path, checkout: Path
) -> None:
    stack = make()
    stack.apply(stack.plan())
    file = f"{checkout}/docker/compose.yaml"
    assert asked.read_text() == f"compose --file {file} up --detach --wait --build --scale spark-worker=2\n"
    assert stack.plan().is_empty
    outputs = parse_outputs(stack.read_outputs())
    assert outputs.kafka.bootstrap == "kafka-1:9092,kafka-2:9092,kafka-3:9092"
    assert outputs.control_store.secret == f"{checkout}/docker/secrets/control_store"


def test_more_workers_change_what_runs_and_end_nothing(
    make: Callable[..., TerraformWorkspace], asked: Path
) -> None:
    make().apply(make().plan())
    asked.unlink()
    more = make(workers=4)
    plan = more.plan()
    assert {c.address: c.action for c in plan.changes} == {
        "module.stack.terraform_data.running": PlanAction.REPLACE
    }
    more.apply(plan)
    assert asked.read_text().endswith("--scale spark-worker=4\n")
    assert "down" not in asked.read_text()


PARTS = (
    "docker/host.Dockerfile",
    "docker/dagster.lock",
    "docker/postgres/dagster.sql",
    "requirements.lock",
    "pipelines/penstock/engine/engine.py",
)


def test_what_an_image_is_built_from_is_part_of_the_plan(
    make: Callable[..., TerraformWorkspace], checkout: Path
) -> None:
    code = checkout / "pipelines" / "penstock" / "engine"
    (code / "__pycache__").mkdir(parents=True)
    (code / "engine.py").touch()
    (checkout / "requirements.lock").touch()
    make().apply(make().plan())
    (code / "__pycache__" / "engine.pyc").write_text("made by running it")
    assert make().plan().is_empty
    for part in PARTS:
        before = (checkout / part).read_text()
        (checkout / part).write_text(f"{before}# another line\n")
        assert [one.address for one in make().plan().changes] == ["module.stack.terraform_data.running"], part
        (checkout / part).write_text(before)


def test_destroy_takes_the_stack_down_with_what_it_kept(
    make: Callable[..., TerraformWorkspace], asked: Path
) -> None:
    make().apply(make().plan())
    asked.unlink()
    make().apply(make().plan(destroy=True))
    assert asked.read_text().endswith("down --volumes\n")


def test_without_a_password_nothing_is_started(
    make: Callable[..., TerraformWorkspace], checkout: Path, asked: Path
) -> None:
    (checkout / "docker" / "secrets" / "control_store").unlink()
    with pytest.raises(PlanFailedError, match="write one into"):
        make().plan()
    assert not asked.exists()


def test_an_engine_that_fails_is_named(make: Callable[..., TerraformWorkspace], checkout: Path) -> None:
    (checkout / "broken").touch()
    with pytest.raises(ApplyFailedError, match="no engine") as caught:
        make().apply(make().plan())
    assert caught.value.resources == ("module.stack.terraform_data.running",)


def test_the_password_is_in_neither_state_nor_plan(
    make: Callable[..., TerraformWorkspace], checkout: Path
) -> None:
    stack = make()
    plan = stack.plan()
    kept = [path.read_bytes() for path in stack.saved_plans.directory.rglob("*") if path.is_file()]
    stack.apply(plan)
    kept += [path.read_bytes() for path in (checkout / ".penstock").rglob("*") if path.is_file()]
    assert len(kept) >= 3
    assert not [text for text in kept if b"canary-91c2" in text]
