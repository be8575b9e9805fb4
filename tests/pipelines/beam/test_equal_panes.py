"""Three programs, written for Apache Beam and for this platform, show the same panes of the same script."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.pipelines.reference import Batch, Evaluator, Record
from penstock.pipelines.state.columns import NEVER
from penstock.platform.demo.beside.beam import counted
from penstock.platform.demo.beside.beam.environment import python_with_beam
from penstock.platform.demo.beside.beam.playing import SCRIPTS, batches, here, in_beam
from penstock.platform.demo.beside.beam.programs_here import PROGRAMS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def beam(pytestconfig: pytest.Config) -> Path:
    """A Python that has Beam; skipped by name, with the reason, where it cannot be had."""
    python, why = python_with_beam(pytestconfig.rootpath)
    if python is None:
        pytest.skip(why)
    return python


@pytest.fixture(scope="module")
def theirs(beam: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[dict[str, Any]]]:
    """What Beam's runner shows of a program; each is run once."""
    return cache(lambda program: in_beam(beam, program, tmp_path_factory.mktemp(program)))


def by_the_contract(program: str) -> list[dict[str, Any]]:
    """Every pane that the reference evaluator shows of a script."""
    plan = PROGRAMS[program].plan
    records, cuts = batches(plan, SCRIPTS[program])
    evaluator = Evaluator(plan)
    shown: list[dict[str, Any]] = []
    for number, cut in enumerate(cuts):
        inside = [offset for span in cut.ranges for offset in range(span.start, span.end)]
        held = tuple(Record(plan.sources[0].name, 0, offset, records[offset]) for offset in inside)
        watermark = cut.watermark
        assert watermark is not None
        batch = Batch(number, cut.clock, held, watermark=watermark, ends=watermark == NEVER)
        for pane in evaluator.run(batch).panes:
            bounds = [round(bound / 1_000) for bound in (pane.start, pane.end)]
            ((_, value),) = pane.values
            row = {"key": pane.key[0], "value": value, "window": bounds, "pane": pane.pane}
            shown.append({**row, "timing": pane.timing})
    return shown


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_beam_and_the_contract_show_the_same_panes(
    theirs: Callable[[str], list[dict[str, Any]]], program: str
) -> None:
    ours = by_the_contract(program)
    assert counted(ours) == counted(theirs(program))
    assert len(ours) > 5


@pytest.mark.spark
@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_beam_and_this_platform_show_the_same_panes(
    spark: "SparkSession", theirs: Callable[[str], list[dict[str, Any]]], tmp_path: Path, program: str
) -> None:
    ours = here(spark, program, tmp_path / "here")
    assert counted(ours) == counted(theirs(program))
    assert len(ours) > 5
