"""Three programs, written for Apache Beam and for this platform, show the same panes of the same script."""

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
    """A Python that has Beam; skipped by name, with the reason, where it cannot be had."""
    python, why = ensure_environment(pytestconfig.rootpath)
    if python is None:
        pytest.skip(why)
    return python


@pytest.fixture(scope="module")
def theirs(beam: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[dict[str, Any]]]:
    """What Beam's runner shows of a program; each is run once."""
    return cache(lambda program: play_in_beam(beam, program, tmp_path_factory.mktemp(program)))


def by_the_contract(program: str) -> list[dict[str, Any]]:
    """Every pane that the reference evaluator shows of a script."""
    plan = PROGRAMS[program].plan
    records, cuts = build_batches(plan, SCRIPTS_BY_PROGRAM[program])
    evaluator = Evaluator(plan)
    shown: list[dict[str, Any]] = []
    for number, cut in enumerate(cuts):
        inside = [offset for span in cut.ranges for offset in range(span.start, span.end)]
        held = tuple(InputRecord(plan.sources[0].name, 0, offset, records[offset]) for offset in inside)
        watermark = cut.watermark
        assert watermark is not None
        batch = InputBatch(
            number, cut.clock_ms, held, watermark=watermark, is_last=watermark == MAX_TIMESTAMP_MS
        )
        for pane in evaluator.run(batch).panes:
            bounds = [round(bound / 1_000) for bound in (pane.start, pane.end)]
            ((_, value),) = pane.values
            row = {"key": pane.key[0], "value": value, "window": bounds, "pane": pane.pane_index}
            shown.append({**row, "timing": pane.timing})
    return shown


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_beam_and_the_contract_show_the_same_panes(
    theirs: Callable[[str], list[dict[str, Any]]], program: str
) -> None:
    ours = by_the_contract(program)
    assert count_panes(ours) == count_panes(theirs(program))
    assert len(ours) > 5


@pytest.mark.spark
@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_beam_and_this_platform_show_the_same_panes(
    spark: "SparkSession", theirs: Callable[[str], list[dict[str, Any]]], tmp_path: Path, program: str
) -> None:
    ours = play_in_penstock(spark, program, tmp_path / "here")
    assert count_panes(ours) == count_panes(theirs(program))
    assert len(ours) > 5
