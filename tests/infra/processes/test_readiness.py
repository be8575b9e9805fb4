"""Programs that become ready later, or never."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.infra.processes.process_states import MakeProgram, program_state

from penstock.infra.errors import ProgramsNotReadyError
from penstock.infra.ports import find_free_ports
from penstock.infra.processes import ProcessManager, Program

pytestmark = pytest.mark.whole

SERVE = "import http.server as h; h.HTTPServer(('127.0.0.1', {}), h.BaseHTTPRequestHandler).serve_forever()"


def test_a_program_waits_for_its_required_address(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    [port] = find_free_ports(1)
    address = ("127.0.0.1", port)
    client = python_program("client", waits_for=(address,))
    manager.start([client], await_names=[])
    eventually(lambda: manager.list_statuses()[0].detail)
    with pytest.raises(ProgramsNotReadyError, match=rf"client is not ready \(waiting: for 127.0.0.1:{port}"):
        manager.start([client], timeout_s=0.5)
    server = python_program("server", SERVE.format(port), answers_at=address)
    manager.start([server, client])
    assert [status.ready for status in manager.list_statuses()] == [True, True]


def test_a_failing_program_is_reported_with_its_log_and_retried(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None], tmp_path: Path
) -> None:
    repaired = tmp_path / "repaired"
    code = (
        f"import pathlib, signal\nif not pathlib.Path({str(repaired)!r}).exists(): raise SystemExit('no oil')\n"
        "signal.pause()"
    )
    [port] = find_free_ports(1)
    failing = python_program("pump", code, answers_at=("127.0.0.1", port))
    with pytest.raises(ProgramsNotReadyError, match="no oil"):
        manager.start([failing])
    assert manager.list_statuses()[0].is_failing
    repaired.touch()
    eventually(lambda: program_state(manager, "pump") == "running")


def test_a_program_that_reports_readiness_is_ready_only_then(
    manager: ProcessManager, python_program: MakeProgram, tmp_path: Path
) -> None:
    repaired = tmp_path / "repaired"
    fails_late = (
        "import pathlib, signal, time\nfrom penstock.infra.readiness import report_ready\ntime.sleep(1.2)\n"
        f"if not pathlib.Path({str(repaired)!r}).exists(): raise SystemExit('no oil')\n"
        "report_ready()\nsignal.pause()"
    )
    with pytest.raises(ProgramsNotReadyError, match="no oil"):
        manager.start([python_program("pump", fails_late, reports_ready=True)])
    repaired.touch()
    manager.start([python_program("pump", fails_late, reports_ready=True)])
    assert manager.list_statuses()[0].ready
    manager.stop_program("pump")
    assert not manager.list_statuses()[0].ready


def test_a_start_retries_a_waiting_program_immediately(
    manager: ProcessManager, python_program: MakeProgram, tmp_path: Path
) -> None:
    repaired = tmp_path / "repaired"
    code = (
        f"import pathlib, signal\nif not pathlib.Path({str(repaired)!r}).exists(): raise SystemExit('no oil')\n"
        "signal.pause()"
    )
    with pytest.raises(ProgramsNotReadyError, match="no oil"):
        manager.start([python_program("pump", code)])
    repaired.touch()
    manager.start([python_program("pump", code)])
    [status] = manager.list_statuses()
    assert (status.ready, status.failures) == (True, 0)


def test_a_start_waits_only_for_the_awaited_programs(
    manager: ProcessManager, python_program: MakeProgram
) -> None:
    fails = python_program("fails", "raise SystemExit(1)")
    manager.start([python_program("base"), fails], await_names=["base"])
    assert [status.ready for status in manager.list_statuses()] == [True, False]


def test_a_retried_program_can_be_stopped(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    with pytest.raises(ProgramsNotReadyError):
        manager.start([python_program("fails", "raise SystemExit(1)")])
    eventually(lambda: program_state(manager, "fails") == "retrying")
    manager.stop_program("fails")
    assert program_state(manager, "fails") == "stopped"


def test_a_one_time_program_runs_until_it_succeeds(
    manager: ProcessManager, python_program: MakeProgram, tmp_path: Path
) -> None:
    tries = tmp_path / "tries"
    code = (
        f"import pathlib; tries = pathlib.Path({str(tries)!r}); tries.open('a').write('x')\n"
        "raise SystemExit(0 if len(tries.read_text()) == 2 else 1)"
    )
    prepare = python_program("prepare", code, until_done=True)
    manager.start([prepare])
    assert (program_state(manager, "prepare"), tries.read_text()) == ("done", "xx")
    manager.start([prepare])
    assert tries.read_text() == "xx"


def test_a_missing_command_is_named(manager: ProcessManager) -> None:
    with pytest.raises(ProgramsNotReadyError, match=r"cannot be started: No such file .*/no/such/program"):
        manager.start([Program("absent", ("/no/such/program",))])
