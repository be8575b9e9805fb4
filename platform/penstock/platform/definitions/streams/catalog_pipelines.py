"""A pipeline of the catalog, with what Dagster shows beside its plan."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.plan import Plan
from penstock.engine.user_modules import find_pipeline_file
from penstock.platform.services.stream_catalog import load_valid_plans


@dataclass(frozen=True)
class CatalogPipeline:
    """A plan, the sentence that its author wrote about it, and the file that it is written in."""

    plan: Plan
    description: str
    file: Path | None = None

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.plan.name


def list_catalog_pipelines() -> Iterator[CatalogPipeline]:
    """Every pipeline of the catalog that can be loaded."""
    for plan in load_valid_plans():
        file = find_pipeline_file(plan.name)
        yield CatalogPipeline(plan, "" if file is None else read_description(file), file)


def read_description(file: Path) -> str:
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
