"""A pipeline of the catalog, with what Dagster shows beside its plan."""

from dataclasses import dataclass
from pathlib import Path

from penstock.pipelines.plan import Plan


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
