"""Three programs for Apache Beam and for Penstock emit the same panes for the same script."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.comparisons.beam.beam_environment import ensure_environment
from tests.comparisons.beam.pane_comparison import count_panes
from tests.comparisons.beam.programs_in_penstock import PROGRAMS
from tests.comparisons.beam.script_player import (
    SCRIPTS_BY_PROGRAM,
    build_batches,
    play_in_beam,
    play_in_penstock,
)

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def beam(pytestconfig: pytest.Config) -> Path:
    """A Python with Beam; skipped with the reason where it cannot be installed."""
    python, reason = ensure_environment(pytestconfig.rootpath)
    if python is None:
        pytest.skip(reason)
    return python


@pytest.fixture(scope="module")
def beam_panes(beam: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[dict[str, Any]]]:
    """The panes of a program in Beam; each is run once."""
    return cache(lambda program: play_in_beam(beam, program, tmp_path_factory.mktemp(program)))


def play_in_reference(program: str) -> list[dict[str, Any]]:
    """Return the panes of the reference evaluator for a script."""
    plan = PROGRAMS[program].plan
    records, input_batches = build_batches(plan, SCRIPTS_BY_PROGRAM[program])
    evaluator = Evaluator(plan)
    rows: list[dict[str, Any]] = []
    for number, input_batch in enumerate(input_batches):
        offsets = [offset for span in input_batch.ranges for offset in range(span.start, span.end)]
        input_records = tuple(
            InputRecord(plan.sources[0].name, 0, offset, records[offset]) for offset in offsets
        )
        watermark = input_batch.watermark
        assert watermark is not None
        batch = InputBatch(
            number,
            input_batch.clock_ms,
            input_records,
            watermark=watermark,
            is_last=watermark == MAX_TIMESTAMP_MS,
        )
        for pane in evaluator.run(batch).panes:
            bounds = [round(bound / 1_000) for bound in (pane.start, pane.end)]
            ((_, value),) = pane.values
            row = {"key": pane.key[0], "value": value, "window": bounds, "pane": pane.pane_index}
            rows.append({**row, "timing": pane.timing})
    return rows


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_beam_and_the_reference_emit_the_same_panes(
    beam_panes: Callable[[str], list[dict[str, Any]]], program: str
) -> None:
    panes = play_in_reference(program)
    assert count_panes(panes) == count_panes(beam_panes(program))
    assert len(panes) > 5


@pytest.mark.spark
@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_beam_and_penstock_emit_the_same_panes(
    spark: "SparkSession", beam_panes: Callable[[str], list[dict[str, Any]]], tmp_path: Path, program: str
) -> None:
    panes = play_in_penstock(spark, program, tmp_path / "here")
    assert count_panes(panes) == count_panes(beam_panes(program))
    assert len(panes) > 5
