"""The setup and the result of a comparison with another system."""

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
    """Settings and folder of a comparison, its progress output, and the question before an installation."""

    settings: Settings
    folder: Path
    step: Callable[[str], AbstractContextManager[ProgressReporter]]
    confirm_install: Callable[[str], bool]


@dataclass(frozen=True)
class ComparisonResult:
    """The rows of a comparison, whether both systems agree, and the file with all results or the diagram."""

    columns: Sequence[str]
    rows: Sequence[Row]
    summary: str
    is_equal: bool
    result: Path
    page: Path

    def copy_to(self, folder: Path) -> "ComparisonResult":
        """Copy the result file to another folder, and return the result with the new path."""
        folder.mkdir(parents=True, exist_ok=True)
        return replace(self, result=Path(shutil.copy(self.result, folder)))


def describe_equality(is_same: bool) -> str:
    """Return the text of a table cell that says whether two results are equal."""
    return "equal" if is_same else "different"
