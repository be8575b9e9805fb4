"""A test run that is killed leaves no process behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.patience import PATIENCE_S

from penstock.core.waiting import wait_until

DETACHING_TEST = """
import os, pathlib, subprocess, sys, time

def test_waits_beside_detached_processes():
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    child = subprocess.Popen(sleep)
    starter = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], start_new_session=True, stdout=2).pid)"
    # Its parent ends, and it has a session of its own, as the stack's process manager has.
    orphan = subprocess.run([sys.executable, "-c", starter, *sleep], stdout=subprocess.PIPE, text=True)
    partial = pathlib.Path("pids.partial")
    partial.write_text(f"{os.getpid()} {child.pid} {orphan.stdout}")
    partial.rename("pids")
    time.sleep(600)
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_killed_test_run_leaves_no_process(workers: str, tmp_path: Path) -> None:
    (tmp_path / "test_detaching.py").write_text(DETACHING_TEST)
    root = str(Path(__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": f"{root}:{os.environ.get('PYTHONPATH', '')}"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.session_guard",
        "-n",
        workers,
        "--rootdir",
        ".",
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as run:
        wait_until((tmp_path / "pids").exists, PATIENCE_S, "the processes of the run")
        pids = {run.pid, *map(int, (tmp_path / "pids").read_text().split())}
        assert all(map(psutil.pid_exists, pids))
        run.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(map(_is_running, pids)), PATIENCE_S, "the end of all processes of the run")


def _is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
