"""Three programs for Apache Beam and for Penstock: compares every pane of the same input script.

Beam's packages conflict with ours, so Beam is installed into a separate environment, after a confirmation.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from penstock.platform.demo.comparisons.beam.beam_environment import ensure_environment, environment_python
from penstock.platform.demo.comparisons.beam.programs_in_penstock import PROGRAMS
from penstock.platform.demo.comparisons.beam.script_player import PaneRows, play_in_beam, play_in_penstock
from penstock.platform.demo.comparisons.comparison import ComparisonResult, ComparisonSetup, describe_equality
from penstock.platform.errors import DemoError
from penstock.platform.services.command_spark import open_command_spark

PanePair = tuple[PaneRows, PaneRows]


def run(setup: ComparisonSetup) -> ComparisonResult:
    """Run each script in both systems and write a page with every pane."""
    python = ensure_beam_python(setup)
    shutil.rmtree(setup.folder, ignore_errors=True)
    setup.folder.mkdir(parents=True)
    panes_by_program: dict[str, PanePair] = {}
    with open_command_spark(setup.settings, "demo") as session:
        for program in PROGRAMS:
            with setup.step(program) as report_progress:
                folder = setup.folder / program
                folder.mkdir()
                report_progress("by Beam")
                beam_panes = play_in_beam(python, program, folder)
                report_progress("here")
                panes_by_program[program] = (beam_panes, play_in_penstock(session, program, folder / "here"))
    return summarize_comparison(panes_by_program, setup.folder / "beam.md")


def ensure_beam_python(setup: ComparisonSetup) -> Path:
    """Return a Python with Beam, and install it after a confirmation if it is missing."""
    python = environment_python(setup.settings.root)
    if python.exists():
        return python
    environment_folder = python.parent.parent
    if not setup.confirm_install(f"Apache Beam is not installed. Install it into {environment_folder}?"):
        raise DemoError("Apache Beam is not installed; `penstock demo beam --yes` installs it")
    with setup.step("install Apache Beam"):
        installed_python, reason = ensure_environment(setup.settings.root)
    if installed_python is None:
        raise DemoError(reason)
    return installed_python


def summarize_comparison(panes_by_program: Mapping[str, PanePair], page: Path) -> ComparisonResult:
    """Summarize for each program whether the panes are equal, and write all of them to a page."""
    rows = [
        (
            program,
            len(beam_panes),
            len(our_panes),
            describe_equality(count_panes(beam_panes) == count_panes(our_panes)),
        )
        for program, (beam_panes, our_panes) in panes_by_program.items()
    ]
    page.write_text("\n".join(iter_page_lines(panes_by_program)) + "\n", "utf-8")
    return ComparisonResult(
        columns=("program", "panes by Beam", "panes here", "key, window, value, number and timing"),
        rows=rows,
        summary="A script defines the bundles of elements, the watermark and the processing time.",
        is_equal=all(
            count_panes(beam_panes) == count_panes(our_panes)
            for beam_panes, our_panes in panes_by_program.values()
        ),
        result=page,
        page=Path("pipelines/docs/beam.md"),
    )


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
