"""The ids that a stream remembers, in files that an outcome names: part of what a batch decides, as windows are."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.repeats.ids import Sifted, changes, sift
from penstock.pipelines.state import tree as trees
from penstock.pipelines.state.names import run_name

NOTHING_ELSE = pa.schema([])
"""An id has no columns beside those that every state has."""


class Memory:
    """The ids of one stream. A batch is sifted, then remembered, then adopted once its outcome is decided."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._tree = trees.empty(NOTHING_ELSE)

    @property
    def rows(self) -> int:
        """How many ids are remembered, those included that were forgotten and still stand in a file."""
        return self._tree.rows

    def sift(self, ids: pa.Table) -> Sifted:
        """Tell repeats from first records. Nothing is remembered by it."""
        return sift(self._tree, ids)

    def after(self, sifted: Sifted, before: int, watermark: int, batch_id: int) -> trees.Tree:
        """The ids as they are after a batch, in files that nothing names yet."""
        changed = changes(self._tree, sifted, before, watermark)
        path = self._directory / run_name(batch_id)
        return self._tree.with_run(changed, path).compacted(self._directory)

    def adopt(self, files: Sequence[str], tree: trees.Tree | None) -> None:
        """Go on from what a batch decided: from its tree, or from the files that its outcome names."""
        self._tree = trees.opened(NOTHING_ELSE, self._directory, files) if tree is None else tree

    def files(self) -> Iterator[Path]:
        """Every file that there is, named by an outcome or not."""
        return self._directory.glob("run-*")


def memory_of(plan: Plan, directory: Path) -> Memory | None:
    """Where the ids of a plan's records are remembered, if repeats of any input are set aside."""
    return Memory(directory) if any(source.deduplication for source in plan.sources) else None
