"""What a demonstration beside others is given, and what comes of it."""

import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.platform.settings import Settings

ProgressReporter = Callable[[str], None]
Row = tuple[object, ...]


@dataclass(frozen=True)
class ComparisonSetup:
    """Where it runs, how it tells what it does, and whether a person agrees to what it would install."""

    settings: Settings
    folder: Path
    step: Callable[[str], AbstractContextManager[ProgressReporter]]
    confirm_install: Callable[[str], bool]


@dataclass(frozen=True)
class ComparisonResult:
    """What both said: `equal` tells whether it was the same, `result` where all of it, or its picture, is."""

    columns: Sequence[str]
    rows: Sequence[Row]
    summary: str
    is_equal: bool
    result: Path
    page: Path

    def copy_to(self, folder: Path) -> "ComparisonResult":
        """Return the same, with its result in another folder."""
        folder.mkdir(parents=True, exist_ok=True)
        return replace(self, result=Path(shutil.copy(self.result, folder)))


def describe_equality(is_same: bool) -> str:
    """Say whether two are the same, as a cell does."""
    return "the same" if is_same else "not the same"
