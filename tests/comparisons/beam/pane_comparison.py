"""Compares every pane of three programs in Apache Beam and in Penstock, over the same script."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tests.comparisons.beam.beam_environment import ensure_environment
from tests.comparisons.beam.programs_in_penstock import PROGRAMS
from tests.comparisons.beam.script_player import PaneRows, play_in_beam, play_in_penstock
from tests.comparisons.report import ComparisonReport, describe_equality

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PanePair = tuple[PaneRows, PaneRows]


def compare_programs(
    session: "SparkSession", root: Path, folder: Path, report_progress: Callable[[str], None]
) -> ComparisonReport:
    """Run each script in both systems."""
    report_progress("installing Apache Beam")
    python, reason = ensure_environment(root)
    if python is None:
        raise SystemExit(reason)
    panes_by_program: dict[str, PanePair] = {}
    for program in PROGRAMS:
        program_folder = folder / program
        program_folder.mkdir()
        report_progress(f"{program} by Beam")
        beam_panes = play_in_beam(python, program, program_folder)
        report_progress(f"{program} here")
        our_panes = play_in_penstock(session, program, program_folder / "here")
        panes_by_program[program] = (beam_panes, our_panes)
    return summarize_panes(panes_by_program)


def summarize_panes(panes_by_program: Mapping[str, PanePair]) -> ComparisonReport:
    """Summarize for each program whether the panes are equal."""
    rows = [
        (
            program,
            len(beam_panes),
            len(our_panes),
            describe_equality(count_panes(beam_panes) == count_panes(our_panes)),
        )
        for program, (beam_panes, our_panes) in panes_by_program.items()
    ]
    columns = ("program", "panes by Beam", "panes here", "key, window, value, number and timing")
    return ComparisonReport(columns, rows, list(iter_page_lines(panes_by_program)))


def iter_page_lines(panes_by_program: Mapping[str, PanePair]) -> Iterator[str]:
    """Yield the lines of the page: each pane, and how often each system emitted it."""
    yield "# The panes of three programs, by Apache Beam and here"
    for program, (beam_panes, our_panes) in panes_by_program.items():
        yield from ("", f"## {program}", "| pane | by Beam | here |", "|---|---|---|")
        beam_counts, our_counts = count_panes(beam_panes), count_panes(our_panes)
        for pane in sorted(beam_counts | our_counts):
            yield f"| {pane} | {beam_counts[pane]} | {our_counts[pane]} |"


def count_panes(panes: PaneRows) -> Counter[str]:
    """Count the panes; their order is undefined, because bundles do not order keys."""
    return Counter(json.dumps(pane, sort_keys=True) for pane in panes)
