"""Pipelines of the catalog with their descriptions and files."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.plan.stages import Plan
from penstock.engine.user_modules import find_pipeline_file
from penstock.platform.services.stream_catalog import load_valid_plans


@dataclass(frozen=True)
class CatalogPipeline:
    """A plan, its author's description, and its file."""

    plan: Plan
    description: str
    file: Path | None = None

    @property
    def name(self) -> str:
        """Name of the stream."""
        return self.plan.name


def list_catalog_pipelines() -> Iterator[CatalogPipeline]:
    """Yield every pipeline of the catalog that can be loaded."""
    for plan in load_valid_plans():
        file = find_pipeline_file(plan.name)
        yield CatalogPipeline(plan, "" if file is None else read_description(file), file)


def read_description(file: Path) -> str:
    """Return the text at the top of a file: the docstring in Python, the first comment lines in YAML and SQL."""
    text = file.read_text("utf-8")
    if file.suffix == ".py":
        return (ast.get_docstring(ast.parse(text)) or "").strip()
    mark = "--" if file.suffix == ".sql" else "#"
    lines = []
    for line in text.splitlines():
        if not line.startswith(mark):
            break
        lines.append(line.lstrip(f"{mark} "))
    return " ".join(lines)
