"""Timeouts, state locks and killed runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.patience import PATIENCE_S

from penstock.infra.terraform import TerraformEngine, TerraformEvent, TerraformTimeouts, TerraformWorkspace
from penstock.infra.terraform.errors import ApplyFailedError, StateLockedError, TerraformTimeoutError

MakeWorkspace = Callable[..., TerraformWorkspace]

pytestmark = pytest.mark.whole  # dozens of Terraform runs, a second each

GATED = """
resource "terraform_data" "gated" {{
  provisioner "local-exec" {{
    interpreter = ["/bin/sh", "-c"]
    command     = "until [ -e {gate} ]; do sleep 0.05; done"
  }}
}}
resource "terraform_data" "quick" {{}}
"""


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"the condition was not met within {seconds} s"
        threading.Event().wait(0.05)


def test_a_run_past_its_timeout_is_interrupted(
    workspace: MakeWorkspace, engine: TerraformEngine, tmp_path: Path
) -> None:
    hcl = GATED.format(gate=tmp_path / "never")
    gated = workspace(hcl, engine, timeouts=TerraformTimeouts(apply_timeout_s=2, grace_s=20))
    plan = gated.plan()
    with pytest.raises(TerraformTimeoutError) as caught:
        gated.apply(plan)
    assert caught.value.unfinished == ("terraform_data.gated",)
    assert not caught.value.was_killed
    assert "terraform_data.quick" in gated.list_resources()
    assert [change.address for change in gated.plan().changes] == ["terraform_data.gated"]


def test_an_engine_that_does_not_stop_is_killed_with_its_children(
    workspace: MakeWorkspace, tmp_path: Path
) -> None:
    """The engine and its child ignore the signals to stop."""
    stubborn = tmp_path / "stubborn"
    pid = tmp_path / "pid"
    stubborn.write_text(f"#!/bin/sh\ntrap '' INT TERM\nsleep 600 &\necho $! > {pid}\nwait\n")
    stubborn.chmod(0o755)
    timeouts = TerraformTimeouts(prepare_timeout_s=1, grace_s=0.5)
    with pytest.raises(TerraformTimeoutError) as caught:
        workspace("", TerraformEngine("terraform", (str(stubborn),), "1.6.0"), timeouts=timeouts).prepare()
    assert caught.value.was_killed
    wait_until(lambda: not psutil.pid_exists(int(pid.read_text())))


def test_a_locked_state_names_its_holder(
    workspace: MakeWorkspace, engine: TerraformEngine, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    holder = workspace(GATED.format(gate=gate), timeouts=TerraformTimeouts(apply_timeout_s=60, grace_s=10))
    plan = holder.plan()
    started = threading.Event()

    def note_start(_event: TerraformEvent) -> None:
        started.set()

    applying = threading.Thread(target=holder.apply, args=(plan, note_start))
    applying.start()
    try:
        assert started.wait(PATIENCE_S)
        with pytest.raises(StateLockedError) as caught:
            TerraformWorkspace(holder.directory, tmp_path / "other", engine).plan()
        assert caught.value.holder is not None
        assert "Apply" in caught.value.holder.operation
        assert caught.value.holder.lock_id in str(caught.value)
    finally:
        gate.touch()
        applying.join()


def test_a_plan_waits_for_a_lock_up_to_the_timeout(workspace: MakeWorkspace, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    holder = workspace(GATED.format(gate=gate), timeouts=TerraformTimeouts(apply_timeout_s=60, grace_s=10))
    plan = holder.plan()
    started = threading.Event()
    applying = threading.Thread(target=holder.apply, args=(plan, lambda _event: started.set()))
    applying.start()
    assert started.wait(PATIENCE_S)
    opener = threading.Timer(1, gate.touch)
    opener.start()
    patient = TerraformWorkspace(
        holder.directory, tmp_path / "other", holder.engine, timeouts=TerraformTimeouts(lock_timeout_s=60)
    )
    assert patient.plan().is_empty
    applying.join()
    opener.join()


DRIVER = """
import sys
from pathlib import Path
from penstock.infra.terraform import TerraformWorkspace, embedded_engine
workspace = TerraformWorkspace(Path(sys.argv[1]), Path(sys.argv[2]), embedded_engine())
workspace.apply(workspace.saved_plans.load(sys.argv[3]), on_event=lambda event: print(event, flush=True))
"""


def test_terraform_finishes_when_the_process_that_drives_it_is_killed(
    workspace: MakeWorkspace, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gated = workspace(GATED.format(gate=gate))
    plan = gated.plan()
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(gated.directory), str(gated.work_directory), plan.plan_id],
        stdout=subprocess.PIPE,
    )
    assert driver.stdout is not None
    assert driver.stdout.readline()
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    driver.stdout.close()
    gate.touch()
    patient = TerraformWorkspace(
        gated.directory, gated.work_directory, gated.engine, timeouts=TerraformTimeouts(lock_timeout_s=60)
    )
    assert patient.plan().is_empty
    assert set(patient.list_resources()) == {"terraform_data.gated", "terraform_data.quick"}


def test_the_lock_of_a_killed_terraform_is_released(workspace: MakeWorkspace, tmp_path: Path) -> None:
    gated = workspace(GATED.format(gate=tmp_path / "gate"))
    plan = gated.plan()
    others = set(psutil.Process(os.getpid()).children(recursive=True))

    def kill(_event: TerraformEvent) -> None:
        for child in set(psutil.Process(os.getpid()).children(recursive=True)) - others:
            with suppress(psutil.NoSuchProcess):  # later events of the failing apply also call this
                child.kill()

    with pytest.raises(ApplyFailedError, match="Applying environment failed"):
        gated.apply(plan, on_event=kill)
    (tmp_path / "gate").touch()
    gated.apply(gated.plan())
    assert gated.plan().is_empty
