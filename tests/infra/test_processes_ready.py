"""The process manager with real processes that are not ready at once, or never: waited for, retried, reported."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.infra.keeping import MakeProgram, state_of

from penstock.infra.errors import ProgramsNotReadyError
from penstock.infra.ports import find_free_ports
from penstock.infra.processes import ProcessManager, Program

pytestmark = pytest.mark.whole

SERVE = "import http.server as h; h.HTTPServer(('127.0.0.1', {}), h.BaseHTTPRequestHandler).serve_forever()"


def test_a_program_waits_for_the_address_that_it_needs(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    [port] = find_free_ports(1)
    address = ("127.0.0.1", port)
    needs = python_program("needs", waits_for=(address,))
    manager.start([needs], await_names=[])
    eventually(lambda: manager.list_statuses()[0].detail)
    with pytest.raises(ProgramsNotReadyError, match=rf"needs is not ready \(waiting: for 127.0.0.1:{port}"):
        manager.start([needs], timeout_s=0.5)
    server = python_program("server", SERVE.format(port), answers_at=address)
    manager.start([server, needs])
    assert [status.ready for status in manager.list_statuses()] == [True, True]


def test_a_program_that_keeps_failing_is_reported_with_its_log_and_never_given_up(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None], tmp_path: Path
) -> None:
    mend = tmp_path / "mend"
    code = (
        f"import pathlib, signal\nif not pathlib.Path({str(mend)!r}).exists(): raise SystemExit('no oil')\n"
        "signal.pause()"
    )
    [port] = find_free_ports(1)
    failing = python_program("pump", code, answers_at=("127.0.0.1", port))
    with pytest.raises(ProgramsNotReadyError, match="no oil"):
        manager.start([failing])
    assert manager.list_statuses()[0].is_failing
    mend.touch()
    eventually(lambda: state_of(manager, "pump") == "running")


def test_a_program_that_tells_is_ready_when_it_has_told_and_not_before(
    manager: ProcessManager, python_program: MakeProgram, tmp_path: Path
) -> None:
    mend = tmp_path / "mend"
    fails_late = (
        "import pathlib, signal, time\nfrom penstock.infra.readiness import report_ready\ntime.sleep(1.2)\n"
        f"if not pathlib.Path({str(mend)!r}).exists(): raise SystemExit('no oil')\n"
        "report_ready()\nsignal.pause()"
    )
    with pytest.raises(ProgramsNotReadyError, match="no oil"):
        manager.start([python_program("pump", fails_late, reports_ready=True)])
    mend.touch()
    manager.start([python_program("pump", fails_late, reports_ready=True)])
    assert manager.list_statuses()[0].ready
    manager.stop_program("pump")
    assert not manager.list_statuses()[0].ready


def test_a_start_tries_at_once_what_waits_for_its_next_try(
    manager: ProcessManager, python_program: MakeProgram, tmp_path: Path
) -> None:
    mend = tmp_path / "mend"
    code = (
        f"import pathlib, signal\nif not pathlib.Path({str(mend)!r}).exists(): raise SystemExit('no oil')\n"
        "signal.pause()"
    )
    with pytest.raises(ProgramsNotReadyError, match="no oil"):
        manager.start([python_program("pump", code)])
    mend.touch()
    manager.start([python_program("pump", code)])
    [status] = manager.list_statuses()
    assert (status.ready, status.failures) == (True, 0)


def test_only_what_is_awaited_is_waited_for(manager: ProcessManager, python_program: MakeProgram) -> None:
    fails = python_program("fails", "raise SystemExit(1)")
    manager.start([python_program("base"), fails], await_names=["base"])
    assert [status.ready for status in manager.list_statuses()] == [True, False]


def test_a_program_that_is_retried_can_be_stopped_meanwhile(
    manager: ProcessManager, python_program: MakeProgram, eventually: Callable[..., None]
) -> None:
    with pytest.raises(ProgramsNotReadyError):
        manager.start([python_program("fails", "raise SystemExit(1)")])
    eventually(lambda: state_of(manager, "fails") == "retrying")
    manager.stop_program("fails")
    assert state_of(manager, "fails") == "stopped"


def test_a_preparation_runs_until_it_is_done_and_not_again(
    manager: ProcessManager, python_program: MakeProgram, tmp_path: Path
) -> None:
    tries = tmp_path / "tries"
    code = (
        f"import pathlib; tries = pathlib.Path({str(tries)!r}); tries.open('a').write('x')\n"
        "raise SystemExit(0 if len(tries.read_text()) == 2 else 1)"
    )
    prepare = python_program("prepare", code, until_done=True)
    manager.start([prepare])
    assert (state_of(manager, "prepare"), tries.read_text()) == ("done", "xx")
    manager.start([prepare])
    assert tries.read_text() == "xx"


def test_a_command_that_does_not_exist_is_named(manager: ProcessManager) -> None:
    with pytest.raises(ProgramsNotReadyError, match=r"cannot be started: No such file .*/no/such/program"):
        manager.start([Program("absent", ("/no/such/program",))])
