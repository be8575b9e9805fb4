"""What a demonstration beside others is given, and what comes of it."""

import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.platform.settings import Settings

Tell = Callable[[str], None]
Row = tuple[object, ...]


@dataclass(frozen=True)
class Setting:
    """Where it runs, how it tells what it does, and whether a person agrees to what it would install."""

    settings: Settings
    folder: Path
    step: Callable[[str], AbstractContextManager[Tell]]
    agreed: Callable[[str], bool]


@dataclass(frozen=True)
class Compared:
    """What both said: `equal` tells whether it was the same, `result` where all of it, or its picture, is."""

    columns: Sequence[str]
    rows: Sequence[Row]
    said: str
    equal: bool
    result: Path
    page: Path

    def moved(self, folder: Path) -> "Compared":
        """Return the same, with its result in another folder."""
        folder.mkdir(parents=True, exist_ok=True)
        return replace(self, result=Path(shutil.copy(self.result, folder)))


def in_words(same: bool) -> str:
    """Say whether two are the same, as a cell does."""
    return "the same" if same else "not the same"
