"""What is decided for the process manager, before any process is started."""

from pathlib import Path

import pytest

from penstock.core.backoff import MAX_BACKOFF_S, RestartBackoff
from penstock.infra.errors import ProcessManagerError
from penstock.infra.processes import Program
from penstock.infra.processes.manager_layout import MAX_SOCKET_PATH_BYTES, ManagerLayout
from penstock.infra.processes.supervisord_config import (
    build_keeper_spec,
    render_supervisord_config,
    spec_fingerprint,
)
from penstock.infra.tether_spec import TetherSpec


def _pauses(runs: list[float]) -> list[float]:
    backoff, pauses = RestartBackoff(), []
    for ran_seconds in runs:
        backoff = backoff.after_run(ran_seconds)
        pauses.append(backoff.delay_s)
    return pauses


def test_pauses_double_up_to_half_a_minute_and_never_end() -> None:
    assert _pauses([0.1] * 8) == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert _pauses([0.1] * 10_000)[-1] == MAX_BACKOFF_S


def test_a_long_run_makes_the_next_failure_the_first() -> None:
    assert _pauses([0.1, 0.1, 3600, 0.1]) == [0.5, 1, 0.5, 1]


def test_a_program_survives_its_way_to_the_tether(tmp_path: Path) -> None:
    program = Program(
        "pump",
        ("run", "it's", "100%", "a\nb"),
        directory=tmp_path,
        environment={"A": "'\"%(x)s"},
        waits_for=(("127.0.0.1", 1), ("127.0.0.1", 2)),
        answers_at=("127.0.0.1", 3),
    )
    spec = program.to_tether_spec(tmp_path / "state.json")
    (tmp_path / "spec.json").write_text(spec.as_json())
    assert TetherSpec.read(tmp_path / "spec.json") == spec


def test_equal_programs_have_equal_fingerprints_and_changed_ones_have_not(tmp_path: Path) -> None:
    def named(**options: float) -> str:
        return spec_fingerprint(Program("pump", ("run",), **options).to_tether_spec(tmp_path))  # type: ignore[arg-type]

    assert named() == named()
    assert named() != named(stop_seconds=6)


def test_the_configuration_names_no_secret_and_no_port(tmp_path: Path) -> None:
    program = Program("pump", ("run", "--password=p1"), environment={"TOKEN": "p2"})
    text = render_supervisord_config([program], ManagerLayout(tmp_path / "run", tmp_path / "logs"))
    assert "p1" not in text
    assert "p2" not in text
    assert "inet_http_server" not in text
    assert "chmod = 0700" in text


def test_a_folder_that_would_break_the_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProcessManagerError, match="another name"):
        render_supervisord_config(
            [Program("pump", ("run",))], ManagerLayout(tmp_path / "run", tmp_path / "a ;b")
        )


def test_the_socket_of_a_long_path_is_short_and_its_own(tmp_path: Path) -> None:
    one, two = (ManagerLayout(tmp_path / (name * 80) / "run", tmp_path) for name in "ab")
    assert len(str(one.socket_path)) <= MAX_SOCKET_PATH_BYTES
    assert one.socket_path != two.socket_path


def test_the_manager_is_kept_by_a_tether_that_outlives_its_starter(tmp_path: Path) -> None:
    assert build_keeper_spec(ManagerLayout(tmp_path, tmp_path)).lock_file == str(tmp_path / "manager.lock")
