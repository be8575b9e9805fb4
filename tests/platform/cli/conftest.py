"""The command line: arguments in, text and an exit code out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.platform.cli.main import main


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


RunCommand = Callable[..., CommandResult]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder that does not exist yet."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunCommand:
    """Run `penstock` with these arguments, in this process."""

    def command(*arguments: str) -> CommandResult:
        monkeypatch.setattr("sys.argv", ["penstock", *arguments])
        with pytest.raises(SystemExit) as exited:
            main()
        printed = capsys.readouterr()
        return CommandResult(int(exited.value.code or 0), printed.out, printed.err)

    return command
