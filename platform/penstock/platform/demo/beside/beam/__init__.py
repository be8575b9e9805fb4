"""Three programs, written for Apache Beam and for this platform: every pane of the same script, side by side.

Beam's packages do not go with ours, so it gets an environment of its own, which is made when a person agrees.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from penstock.platform.demo.beside.beam.environment import python_of, python_with_beam
from penstock.platform.demo.beside.beam.playing import Panes, here, in_beam
from penstock.platform.demo.beside.beam.programs_here import PROGRAMS
from penstock.platform.demo.beside.compared import Compared, Setting, in_words
from penstock.platform.errors import DemoError
from penstock.platform.local_spark import spark_session

Both = tuple[Panes, Panes]


def run(setting: Setting) -> Compared:
    """Play each script to both, and write down every pane."""
    python = beam(setting)
    shutil.rmtree(setting.folder, ignore_errors=True)
    setting.folder.mkdir(parents=True)
    found: dict[str, Both] = {}
    with spark_session(setting.settings, "demo") as session:
        for program in PROGRAMS:
            with setting.step(program) as tell:
                folder = setting.folder / program
                folder.mkdir()
                tell("by Beam")
                theirs = in_beam(python, program, folder)
                tell("here")
                found[program] = (theirs, here(session, program, folder / "here"))
    return compared(found, setting.folder / "beam.md")


def beam(setting: Setting) -> Path:
    """Return a Python that has Beam; a person is asked before anything is installed."""
    python = python_of(setting.settings.root)
    if python.exists():
        return python
    place = python.parent.parent
    if not setting.agreed(f"Apache Beam is not installed. Install it by its lock into {place}?"):
        raise DemoError(
            "Apache Beam is not installed, and was not to be: `penstock demo beam --yes` installs it"
        )
    with setting.step("Apache Beam, in an environment of its own"):
        made, why = python_with_beam(setting.settings.root)
    if made is None:
        raise DemoError(why)
    return made


def compared(found: Mapping[str, Both], page: Path) -> Compared:
    """Say of each program whether the panes are the same, and write all of them into a page."""
    rows = [
        (program, len(theirs), len(ours), in_words(counted(theirs) == counted(ours)))
        for program, (theirs, ours) in found.items()
    ]
    page.write_text("\n".join(lines(found)) + "\n", "utf-8")
    return Compared(
        columns=("program", "panes by Beam", "panes here", "key, window, value, number and timing"),
        rows=rows,
        said="A script says in which bundles elements come, how far the watermark is and how the clock goes on.",
        equal=all(counted(theirs) == counted(ours) for theirs, ours in found.values()),
        result=page,
        page=Path("pipelines/docs/beam.md"),
    )


def lines(found: Mapping[str, Both]) -> Iterator[str]:
    """Yield the page: each pane that one of the two has shown, and how often each did."""
    yield "# The panes of three programs, by Apache Beam and here"
    for program, (theirs, ours) in found.items():
        yield from ("", f"## {program}", "| pane | by Beam | here |", "|---|---|---|")
        there, own = counted(theirs), counted(ours)
        for pane in sorted(there | own):
            yield f"| {pane} | {there[pane]} | {own[pane]} |"


def counted(panes: Panes) -> Counter[str]:
    """Return how often each pane was shown: bundles leave the order of keys open."""
    return Counter(json.dumps(pane, sort_keys=True) for pane in panes)
