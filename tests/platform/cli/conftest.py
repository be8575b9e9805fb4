"""The command line as a person meets it: words in, text and an exit code out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.platform.cli.main import main


@dataclass(frozen=True)
class Answer:
    """What a command printed and ended with."""

    code: int
    out: str
    err: str


Run = Callable[..., Answer]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, not made yet."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `penstock` with these words, in this process."""

    def command(*words: str) -> Answer:
        monkeypatch.setattr("sys.argv", ["penstock", *words])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return Answer(int(left.value.code or 0), printed.out, printed.err)

    return command
