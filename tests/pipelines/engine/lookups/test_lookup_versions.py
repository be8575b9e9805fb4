"""A retried or replayed batch sees the lookup versions of its first run."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import (
    PLANS,
    KillSchedule,
    SimulatedKill,
    make_batches,
    make_killable_tables,
)

from penstock.conformance.reference.input_records import InputBatch
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.engine_options import EngineOptions
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.lookup_versions import PinnedLookups, read_pinned_lookups, split_by_versions
from penstock.engine.plan.sources import Column
from penstock.engine.plan.steps import LookupStep

STEP = LookupStep("latest/cards", ("key",), (Column("limit", "BIGINT"),))
PLAN = replace(PLANS["fixed"], stages=(replace(PLANS["fixed"].only_stage, steps=(STEP,)),))


@dataclass
class LookupBench(Bench):
    """A stream with a lookup; it records the version that each batch saw."""

    newest_version: int = 0
    versions_by_batch: list[tuple[int, int]] = field(default_factory=list)

    def build_options(self) -> EngineOptions:
        return replace(
            super().build_options(), read_lookup_versions=lambda: {"latest/cards": self.newest_version}
        )

    def feed(self, engine: BatchEngine, batch: InputBatch) -> None:
        if not batch.records:
            engine.run_tick(batch.clock)
            return
        spans = [
            OffsetRange("records", number, min(offsets), max(offsets) + 1)
            for number in (0, 1)
            if (offsets := [record.offset for record in batch.records if record.partition == number])
        ]
        intent = engine.start_data_batch(batch.id, batch.clock, tuple(spans))
        if intent is not None:
            self.versions_by_batch.append((intent.batch_id, intent.lookups["latest/cards"]))
            engine.run_data_batch(intent, self.make_input(batch, intent.clock))


def test_a_retried_batch_sees_the_version_of_its_first_run(tmp_path: Path) -> None:
    first, _, third, fourth, *_ = make_batches()
    bench = LookupBench(PLAN, tmp_path, newest_version=3)
    bench.feed(bench.open(1), first)
    kills = KillSchedule()
    killed_engine = bench.open(2, make_tables=make_killable_tables(kills))
    kills.steps_left = 1
    with pytest.raises(SimulatedKill):
        bench.feed(killed_engine, InputBatch(1, 106, third.records))
    bench.newest_version = 8
    retried = bench.open(3)
    bench.feed(retried, InputBatch(1, 107, third.records))
    bench.feed(retried, InputBatch(2, 109, fourth.records))
    assert bench.versions_by_batch == [(0, 3), (1, 3), (1, 3), (2, 8)]
    recorded = {(row["batch_id"], row["table"], row["version"]) for row in bench.rows("lookups/stream")}
    assert recorded == {(0, "latest/cards", 3), (1, "latest/cards", 3), (2, "latest/cards", 8)}
    pinned = read_pinned_lookups(tmp_path / "warehouse", "stream")
    assert [lookup.versions for lookup in pinned] == [{"latest/cards": version} for version in (3, 3, 8)]
    whole = (OffsetRange("records", 0, 0, 9), OffsetRange("records", 1, 0, 2))
    assert split_by_versions(whole, pinned) == [
        PinnedLookups(
            (OffsetRange("records", 0, 0, 3), OffsetRange("records", 1, 0, 2)), {"latest/cards": 3}
        ),
        PinnedLookups(
            (OffsetRange("records", 0, 3, 4), OffsetRange("records", 1, 2, 2)), {"latest/cards": 8}
        ),
        PinnedLookups((OffsetRange("records", 0, 4, 9), OffsetRange("records", 1, 2, 2)), None),
    ]


def test_a_stream_without_lookups_records_no_versions(tmp_path: Path) -> None:
    bench = Bench(PLANS["fixed"], tmp_path)
    bench.feed(bench.open(), make_batches()[0])
    assert read_pinned_lookups(tmp_path / "warehouse", "stream") == []
    assert not (tmp_path / "warehouse" / "lookups").exists()


batches = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=6)


@settings(deadline=None)
@given(
    first_offsets=st.tuples(*[st.integers(0, 4)] * 2),
    batch_sizes=batches,
    bounds=st.tuples(*[st.integers(0, 20)] * 4),
)
def test_a_split_by_versions_covers_each_record_once_with_its_version(
    first_offsets: tuple[int, int], batch_sizes: list[tuple[int, int, int]], bounds: tuple[int, int, int, int]
) -> None:
    next_offsets, pinned, versions_by_batch = list(first_offsets), [], {}
    for *counts, version in batch_sizes:
        spans = [
            OffsetRange("t", p, next_offsets[p], next_offsets[p] + counts[p]) for p in (0, 1) if counts[p]
        ]
        pinned += [PinnedLookups(tuple(spans), {"table": version})] if spans else []
        versions_by_batch |= {
            (s.partition, offset): version for s in spans for offset in range(s.start, s.end)
        }
        next_offsets = [next_offsets[p] + counts[p] for p in (0, 1)]
    spans = (OffsetRange("t", 0, *sorted(bounds[:2])), OffsetRange("t", 1, *sorted(bounds[2:])))
    found = [
        (span.partition, offset, None if part.versions is None else part.versions["table"])
        for part in split_by_versions(spans, pinned)
        for span in part.ranges
        for offset in range(span.start, span.end)
    ]
    for number, span in enumerate(spans):
        of_partition = [(offset, version) for partition, offset, version in found if partition == number]
        assert of_partition == [
            (offset, versions_by_batch.get((number, offset))) for offset in range(span.start, span.end)
        ]
