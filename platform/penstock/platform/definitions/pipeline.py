"""A pipeline of the catalog, with what Dagster shows beside its plan."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.pipelines.own_modules import file_of
from penstock.pipelines.plan import Plan
from penstock.platform.streams import sound_plans


@dataclass(frozen=True)
class Pipeline:
    """A plan, the sentence that its author wrote about it, and the file that it is written in."""

    plan: Plan
    description: str
    file: Path | None = None

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.plan.name


def catalog_pipelines() -> Iterator[Pipeline]:
    """Every pipeline of the catalog that can be loaded."""
    for plan in sound_plans():
        file = file_of(plan.name)
        yield Pipeline(plan, "" if file is None else first_words(file), file)


def first_words(file: Path) -> str:
    """What a file says of itself at its top: a docstring in Python, comment lines in YAML."""
    text = file.read_text("utf-8")
    if file.suffix == ".py":
        return (ast.get_docstring(ast.parse(text)) or "").strip()
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)
