"""Configuration files of the process manager."""

from pathlib import Path

import pytest

from penstock.infra.errors import ProcessManagerError
from penstock.infra.processes import Program
from penstock.infra.processes.manager_layout import MAX_SOCKET_PATH_BYTES, ManagerLayout
from penstock.infra.processes.supervisord_config import (
    build_keeper_spec,
    render_supervisord_config,
    spec_fingerprint,
)


def test_a_changed_program_has_another_fingerprint(tmp_path: Path) -> None:
    def compute_fingerprint(**options: float) -> str:
        return spec_fingerprint(Program("pump", ("run",), **options).to_tether_spec(tmp_path))  # type: ignore[arg-type]

    assert compute_fingerprint() == compute_fingerprint()
    assert compute_fingerprint() != compute_fingerprint(stop_seconds=6)


def test_the_configuration_contains_no_secret_and_no_port(tmp_path: Path) -> None:
    program = Program("pump", ("run", "--password=p1"), environment={"TOKEN": "p2"})
    text = render_supervisord_config([program], ManagerLayout(tmp_path / "run", tmp_path / "logs"))
    assert "p1" not in text
    assert "p2" not in text
    assert "inet_http_server" not in text
    assert "chmod = 0700" in text


def test_a_folder_with_special_characters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProcessManagerError, match="another name"):
        render_supervisord_config(
            [Program("pump", ("run",))], ManagerLayout(tmp_path / "run", tmp_path / "a ;b")
        )


def test_a_long_folder_has_a_short_unique_socket_path(tmp_path: Path) -> None:
    one, two = (ManagerLayout(tmp_path / (name * 80) / "run", tmp_path) for name in "ab")
    assert len(str(one.socket_path)) <= MAX_SOCKET_PATH_BYTES
    assert one.socket_path != two.socket_path


def test_the_keeper_holds_the_lock_of_the_manager(tmp_path: Path) -> None:
    assert build_keeper_spec(ManagerLayout(tmp_path, tmp_path)).lock_file == str(tmp_path / "manager.lock")
