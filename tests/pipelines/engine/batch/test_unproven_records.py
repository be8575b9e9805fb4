"""A batch whose records turn out to be valid is computed again, once, and has the same results."""

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from tests.pipelines.engine.batch.stream_bench import Bench, InMemoryBatchInput
from tests.pipelines.engine.batch.test_crashes import PLANS, list_owned_paths, make_batches, run_batches

from penstock.conformance.reference.input_records import InputBatch
from penstock.engine.batch.batch_input import BatchInput, UnprovenRecordsError


@dataclass(frozen=True)
class UnprovenInput(InMemoryBatchInput):
    """Raises UnprovenRecordsError in the first attempts."""

    failures: list[int] = field(default_factory=lambda: [1])

    def compute_partials(self) -> pa.Table:
        if self.failures:
            self.failures.pop()
            raise UnprovenRecordsError
        return super().compute_partials()


@dataclass
class UnprovenBench(Bench):
    def make_input(self, batch: InputBatch, clock: int) -> BatchInput:
        return UnprovenInput(self.stage, batch.records, clock, self.other_stages)


@pytest.mark.parametrize("name", ["two stages", min(PLANS)])
def test_a_batch_with_unproven_records_is_computed_again(name: str, tmp_path: Path) -> None:
    plain, repeated = Bench(PLANS[name], tmp_path / "plain"), UnprovenBench(PLANS[name], tmp_path / "again")
    for bench in (plain, repeated):
        run_batches(bench, batches=make_batches())
    for table in list_owned_paths(PLANS[name]):
        assert repeated.rows(table) == plain.rows(table)
