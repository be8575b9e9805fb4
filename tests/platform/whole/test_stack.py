"""The local stack through its commands: up, status, changes, down, up again."""

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
from tests.patience import PATIENCE_S
from tests.platform.security.declared_listeners import read_sockets
from tests.platform.whole.canary_secrets import find_open_files, find_shown_secrets
from tests.platform.whole.scratch_stack import ScratchStack, poll_until
from tests.platform.whole.stack_processes import check_counted_once
from tests.platform.whole.table_comparison import check_audit, wait_for_balance

from penstock.infra.ports import read_first_ephemeral_port

pytestmark = pytest.mark.whole


def list_stack_commands(stack: ScratchStack) -> list[str]:
    """List the commands of the processes in the folder of the stack."""
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return [
        " ".join(arguments)
        for arguments in commands
        if any(str(stack.home) in command for command in arguments)
    ]


def test_up_shows_programs_and_addresses(running: ScratchStack) -> None:
    output = running.run_checked("up")
    for program in ("broker", "host", "feed", "code", "webserver", "console", "daemon"):
        assert f"\n{program} " in output
    assert running.ui in output
    assert "penstock table show sensor_minute" in output


def test_a_second_up_changes_nothing(running: ScratchStack) -> None:
    before = running.pids()
    running.up()
    assert running.pids() == before


def test_status_is_healthy_and_tables_are_shown(running: ScratchStack) -> None:
    # A slow machine may renew a lease late.
    status = poll_until(
        lambda: (seen := running.status())["healthy"] and seen, PATIENCE_S, "everything to run"
    )
    assert {program["name"]: program["state"] for program in status["programs"]} == dict.fromkeys(
        ("broker", "code", "webserver", "console", "daemon", "host", "feed"), "running"
    )
    shown = running.run_checked("table", "show", "sensor_minute", "--limit", "3").splitlines()
    assert len(shown) == 4
    assert shown[0].split()[0] == "device"
    poll_until(lambda: running.batch("archive-sensors") >= 0, PATIENCE_S, "the archive")
    assert "value" in running.run_checked("table", "show", "sensors", "--kind", "raw", "--limit", "3").split()


def test_every_port_is_on_the_loopback_address(running: ScratchStack) -> None:
    listening = [
        connection.laddr.ip
        for pid in running.pids().values()
        for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        for connection in list_connections(process)
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


def test_every_listening_port_is_declared(running: ScratchStack) -> None:
    shown = json.loads(running.run_checked("ports", "--json"))
    sockets = {
        (program, f"{socket.address}:{socket.port}")
        for program, pid in running.pids().items()
        if program != "manager"
        for socket in read_sockets(pid)
        if socket.port in list(map(int, running.ports.values())) or socket.port < read_first_ephemeral_port()
    }
    assert {program for program, _ in sockets} == {"broker", "code", "webserver", "console", "host"}
    assert len(sockets) == len(running.ports)
    assert sockets <= {(row["program"], row["address"]) for row in shown}


def list_connections(process: psutil.Process) -> list[Any]:
    """List the connections of a process; none if it has just ended."""
    try:
        return process.net_connections("tcp")
    except psutil.NoSuchProcess:
        return []


def test_doctor_finds_nothing_wrong(running: ScratchStack) -> None:
    running.run_checked("doctor")


def test_no_secret_is_shown_and_no_file_is_open_to_others(running: ScratchStack) -> None:
    assert find_shown_secrets(running) == []
    assert find_open_files(running.home) == []


def test_a_stream_follows_commands_while_records_flow(running: ScratchStack) -> None:
    running.run_checked("stream", "drain", "sensor_minute")
    batch = running.batch()
    time.sleep(1.5)
    assert running.batch() == batch
    for command in ("start", "stop", "start", "pause"):
        running.run_checked("stream", command, "sensor_minute")
    assert running.state() == "paused"
    poll_until(running.ready, PATIENCE_S, "a paused stream to be healthy")
    running.run_checked("stream", "resume", "sensor_minute")
    batch = running.batch()
    running.run_checked("stream", "restart", "sensor_minute")
    poll_until(lambda: running.batch() > batch, PATIENCE_S, "another batch")


LATEST_AND_LOG = """
WITH changes AS (
    SELECT *, lag(kind) OVER (
        PARTITION BY device, window_start, window_end ORDER BY batch_id, kind DESC
    ) AS previous_kind
    FROM sensor_minute_log
)
SELECT
    (SELECT sum(readings) FROM sensor_minute) AS latest,
    sum(CASE kind WHEN 'insert' THEN readings ELSE -readings END) AS log
FROM changes
WHERE kind = 'retract' OR previous_kind IS DISTINCT FROM 'insert'
"""


def test_a_query_sees_each_batch_in_all_tables_and_wait_finds_new_records(running: ScratchStack) -> None:
    for _ in range(3):
        (answer,) = json.loads(running.run_checked("sql", LATEST_AND_LOG, "--format", "json"))
        assert answer["latest"] == answer["log"] > 0
    ends = 'SELECT max("end") AS "end" FROM sensor_minute_ledger WHERE "partition" = 0'
    (ledger,) = json.loads(running.run_checked("sql", ends, "--format", "json"))
    arrival = running.run_checked("wait", "sensors", "0", str(ledger["end"] + 5))
    assert "sensor_minute: aggregated" in arrival


def test_after_every_command_tables_and_ledger_are_exact(running: ScratchStack) -> None:
    """This runs before the replays below, which replace the tables."""
    with running.without_feed():
        check_counted_once(running)
        wait_for_balance(running)
        check_audit(running)


@pytest.mark.parametrize("start", ["topic", "archive"])
def test_a_replay_replaces_the_tables_while_records_flow(running: ScratchStack, start: str) -> None:
    """Replays from an offset and from a time are in test_definition_changes.py."""
    output = running.run_checked("stream", "replay", "sensor_minute", "--from", start, seconds=180)
    assert re.search(r"^[\d,]+ records in [\d.]+ s, estimated \d+ \w+ to \d+ \w+ from ", output, re.MULTILINE)
    after = int(output.split("the stream resumes after batch ")[1])
    poll_until(
        lambda: running.batch() > after and running.state() == "running", PATIENCE_S, "the stream to resume"
    )
    assert "no changes" in running.run_checked("stream", "plan-upgrade", "sensor_minute")


def test_a_day_of_the_archive_is_run_and_maintenance_works(running: ScratchStack) -> None:
    running.run_checked("stream", "drain", "archive-sensors")
    archive_rows = running.table("raw", "sensors")
    day = max(archive_rows.column("day").to_pylist())
    run_result = json.loads(
        running.run_checked("run", "sensor_minute", "--day", day.isoformat(), "--json", seconds=180)
    )
    assert run_result["accounts"]["read"] == archive_rows.column("day").to_pylist().count(day)
    assert run_result["name"] == day.isoformat()
    running.run_checked("stream", "start", "archive-sensors")
    actions = {action["action"] for action in json.loads(running.run_checked("maintain", "--json"))}
    assert {"batches removed", "events removed", "runs removed"} <= actions


def test_the_command_of_the_readme_launches_a_job(running: ScratchStack, pytestconfig: pytest.Config) -> None:
    """The printed line, with the paths of this stack."""
    readme = (pytestconfig.rootpath / "README.md").read_text("utf-8")
    (line,) = re.findall(r"^DAGSTER_HOME=\$PWD/.* job launch .*$", readme, re.MULTILINE)
    line = line.replace("$PWD/.penstock", str(running.home)).replace(".penstock", str(running.home))
    line = line.replace(".venv/bin/dagster", str(Path(sys.executable).with_name("dagster")))
    assert "stream_start" in line
    batch = running.batch()
    launch(running, line.replace("stream_start", "stream_drain"))
    poll_until(lambda: running.state() == "drained", PATIENCE_S, "the job to drain the stream")
    launch(running, line)
    poll_until(
        lambda: running.state() == "running" and running.batch() > batch,
        PATIENCE_S,
        "the job to start the stream",
    )


def launch(stack: ScratchStack, line: str) -> None:
    actions = subprocess.run(
        ["bash", "-c", line],
        env=stack.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert actions.returncode == 0, actions.stderr


def test_down_stops_everything_and_up_resumes(running: ScratchStack) -> None:
    started_at = time.monotonic()
    running.down()
    assert time.monotonic() - started_at < 20
    assert list_stack_commands(running) == []
    batch = running.batch()
    running.up()
    poll_until(lambda: running.batch() > batch + 5, PATIENCE_S, "more batches")
    with running.without_feed():
        check_counted_once(running)
        wait_for_balance(running)
    running.down()  # no later test needs it


def test_a_port_in_use_stops_the_start_first(own_stack: ScratchStack) -> None:
    port = int(own_stack.ports["DAGSTER__PORT"])
    with closing(socket.create_server(("127.0.0.1", port))):
        refused = own_stack.run("up")
    assert refused.returncode == 1
    assert f"Port {port} " in refused.stderr
    assert "PENSTOCK_DAGSTER__PORT=PORT penstock up" in refused.stderr
    assert list_stack_commands(own_stack) == []


def test_a_failed_start_leaves_no_process(own_stack: ScratchStack) -> None:
    own_stack.home.mkdir()
    (own_stack.home / "producers").write_text("a file in place of the folder", "utf-8")
    refused = own_stack.run("up", seconds=180)
    assert refused.returncode == 1
    assert "feed is not ready" in refused.stderr
    assert list_stack_commands(own_stack) == []


def test_a_killed_start_is_completed_by_the_next(own_stack: ScratchStack) -> None:
    penstock = str(Path(sys.executable).with_name("penstock"))
    quiet = subprocess.DEVNULL
    starting = subprocess.Popen([penstock, "up"], env=own_stack.environment, stderr=quiet, stdout=quiet)
    poll_until(lambda: "broker" in own_stack.pids(), PATIENCE_S, "the broker to start")
    starting.kill()
    starting.wait()
    own_stack.up()
    assert own_stack.ready()
    # The feed was not started before its topic existed.
    assert "No topic" not in (own_stack.home / "logs" / "feed.log").read_text("utf-8")
