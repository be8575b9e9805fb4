"""The local stack as a person uses it: up, looked at, changed, down, up again."""

import json
import re
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.platform.whole.books import audited, balanced
from tests.platform.whole.killing import counted_once
from tests.platform.whole.stack import ScratchStack, until

pytestmark = pytest.mark.whole


def of_stack(stack: ScratchStack) -> list[str]:
    """The command of every process that works in the stack's folder."""
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return [" ".join(words) for words in commands if any(str(stack.home) in word for word in words)]


def test_up_ends_with_what_runs_and_where_to_look(running: ScratchStack) -> None:
    said = running.must("up")
    for program in ("broker", "host", "feed", "code", "webserver", "daemon"):
        assert f"\n{program} " in said
    assert running.ui in said
    assert "penstock table show sensor_minute" in said


def test_up_said_again_changes_nothing(running: ScratchStack) -> None:
    before = running.pids()
    running.up()
    assert running.pids() == before


def test_status_is_right_and_results_can_be_shown(running: ScratchStack) -> None:
    # A lease is renewed every five seconds, and a machine that stood still for longer is late.
    status = until(lambda: (seen := running.status())["healthy"] and seen, 60, "everything to run")
    assert {program["name"]: program["state"] for program in status["programs"]} == dict.fromkeys(
        ("broker", "code", "webserver", "daemon", "host", "feed"), "running"
    )
    shown = running.must("table", "show", "sensor_minute", "--limit", "3").splitlines()
    assert len(shown) == 4
    assert shown[0].split()[0] == "device"
    until(lambda: running.batch("archive-sensors") >= 0, 60, "the archive")
    assert "value" in running.must("table", "show", "sensors", "--kind", "raw", "--limit", "3").split()


def test_everything_listens_on_loopback_only(running: ScratchStack) -> None:
    listening = [
        connection.laddr.ip
        for pid in running.pids().values()
        for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        for connection in connections_of(process)
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


def connections_of(process: psutil.Process) -> list[Any]:
    """What a process has open; nothing where it has just ended, as Dagster's own helpers do now and then."""
    try:
        return process.net_connections("tcp")
    except psutil.NoSuchProcess:
        return []


def test_doctor_finds_nothing_wrong(running: ScratchStack) -> None:
    running.must("doctor")


def test_a_stream_is_steered_by_word_while_records_flow(running: ScratchStack) -> None:
    running.must("stream", "drain", "sensor_minute")
    batch = running.batch()
    time.sleep(1.5)
    assert running.batch() == batch
    for word in ("start", "stop", "start", "pause"):
        running.must("stream", word, "sensor_minute")
    assert running.state() == "paused"
    until(running.ready, 60, "a stream that is to be paused to be as it should")
    running.must("stream", "resume", "sensor_minute")
    batch = running.batch()
    running.must("stream", "restart", "sensor_minute")
    until(lambda: running.batch() > batch, 60, "another batch")


@pytest.mark.timeout(600)
def test_after_every_verb_tables_and_books_hold_what_was_acknowledged(running: ScratchStack) -> None:
    """Before the replays below, which put other tables in the place of those that all this has written."""
    with running.without_feed():
        counted_once(running)
        balanced(running)
        audited(running)


@pytest.mark.parametrize("start", ["topic", "archive"])
def test_a_replay_while_records_flow_takes_the_place_of_what_was_there(
    running: ScratchStack, start: str
) -> None:
    """Those from an offset and from a time are in test_definitions.py."""
    said = running.must("stream", "replay", "sensor_minute", "--from", start, seconds=180)
    after = int(said.split("the stream resumes after batch ")[1])
    until(lambda: running.batch() > after and running.state() == "running", 60, "the stream to go on")
    assert "no changes" in running.must("stream", "plan-upgrade", "sensor_minute")


def test_a_day_of_the_archive_is_run_again_and_maintenance_is_done_beside(running: ScratchStack) -> None:
    running.must("stream", "drain", "archive-sensors")
    archived = running.table("raw", "sensors")
    day = max(archived.column("day").to_pylist())
    ran = json.loads(running.must("run", "sensor_minute", "--day", day.isoformat(), "--json", seconds=180))
    assert ran["accounts"]["read"] == archived.column("day").to_pylist().count(day)
    assert ran["name"] == day.isoformat()
    running.must("stream", "start", "archive-sensors")
    done = {each["action"] for each in json.loads(running.must("maintain", "--json"))}
    assert {"batches removed", "events removed", "runs removed"} <= done


def test_a_job_is_launched_by_the_readmes_line(running: ScratchStack, pytestconfig: pytest.Config) -> None:
    """As it is printed, but for the places of home and programs."""
    readme = (pytestconfig.rootpath / "README.md").read_text("utf-8")
    (line,) = re.findall(r"^DAGSTER_HOME=\$PWD/.* job launch .*$", readme, re.MULTILINE)
    line = line.replace("$PWD/.penstock", str(running.home)).replace(".penstock", str(running.home))
    line = line.replace(".venv/bin/dagster", str(Path(sys.executable).with_name("dagster")))
    assert "stream_start" in line
    batch = running.batch()
    launch(running, line.replace("stream_start", "stream_drain"))
    until(lambda: running.state() == "drained", 60, "the job to drain the stream")
    launch(running, line)
    until(lambda: running.state() == "running" and running.batch() > batch, 60, "the job to start the stream")


def launch(stack: ScratchStack, line: str) -> None:
    done = subprocess.run(
        ["bash", "-c", line], env=stack.environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_down_ends_everything_in_time_and_up_goes_on_where_it_stopped(running: ScratchStack) -> None:
    began = time.monotonic()
    running.down()
    assert time.monotonic() - began < 20
    assert of_stack(running) == []
    batch = running.batch()
    running.up()
    until(lambda: running.batch() > batch + 5, 60, "more batches")
    with running.without_feed():
        counted_once(running)
        balanced(running)
    running.down()  # the last that needs it: others on this machine are not to be held up by it


def test_a_taken_port_stops_the_start_before_anything_runs(own: ScratchStack) -> None:
    port = int(own.ports["DAGSTER__PORT"])
    with closing(socket.create_server(("127.0.0.1", port))):
        refused = own.run("up")
    assert refused.returncode == 1
    assert f"Port {port} " in refused.stderr
    assert "PENSTOCK_DAGSTER__PORT=PORT penstock up" in refused.stderr
    assert of_stack(own) == []


def test_a_start_that_fails_half_way_leaves_nothing_running(own: ScratchStack) -> None:
    own.home.mkdir()
    (own.home / "producers").write_text("a file where the feed wants a folder", "utf-8")
    refused = own.run("up", seconds=180)
    assert refused.returncode == 1
    assert "feed is not ready" in refused.stderr
    assert of_stack(own) == []


def test_a_start_that_was_killed_is_finished_by_the_next(own: ScratchStack) -> None:
    penstock = str(Path(sys.executable).with_name("penstock"))
    quiet = subprocess.DEVNULL
    starting = subprocess.Popen([penstock, "up"], env=own.environment, stderr=quiet, stdout=quiet)
    until(lambda: "broker" in own.pids(), 60, "the broker to be begun")
    starting.kill()
    starting.wait()
    own.up()
    assert own.ready()
    # Nobody was begun before the topics were there, and tried in vain.
    assert "No topic" not in (own.home / "logs" / "feed.log").read_text("utf-8")
