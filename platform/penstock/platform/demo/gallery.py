"""Runs demonstrations on one broker and in one Spark session, and writes their pages and diagrams."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from penstock.core.names import explain_unknown_name
from penstock.core.progress import ProgressReporter
from penstock.engine.diagrams import build_scene, render_pane_diagram
from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker
from penstock.pipelines import catalog
from penstock.platform.demo.demo_run import DemoResult, run_demo
from penstock.platform.demo.pipeline_page import render_page
from penstock.platform.errors import UnknownStreamError
from penstock.platform.services.command_spark import open_command_spark
from penstock.platform.settings import Settings

INTRODUCTION = """\
# Gallery
The shipped pipelines at work. Event time is across, processing time is upwards. A dot is a record, the blue
line is the watermark, and a bar is a pane as wide as its window: early, on time, or late. Without late records,
all dots would be on the dashed line. A picture shows one key, or all keys where there are few results. Each
page has the four questions, the results, the expectations and the definition. The command below a picture makes
it again, byte for byte: its records come from a seed, and its clock is that of the input.

`penstock demo --all --out pipelines/docs/gallery` makes the whole gallery. Penstock is also compared with
[Apache Beam](../beam.md), with [Spark's DStreams](../dstreams.md) and with
[Spark's real-time mode](../record_at_a_time.md)."""

StepContext = Callable[[str], AbstractContextManager[ProgressReporter]]


@dataclass(frozen=True)
class FinishedDemo:
    """A completed demonstration with the paths of its page and diagram."""

    result: DemoResult
    page: Path
    picture: Path


def run_demos(
    settings: Settings, names: Sequence[str], out: Path | None, step: StepContext
) -> Iterator[FinishedDemo]:
    """Yield each completed demonstration. Without an output folder, its page is next to its tables."""
    for name in names:
        if name not in catalog.pipeline_names():
            raise UnknownStreamError(
                explain_unknown_name("pipeline", name, catalog.pipeline_names(), "penstock demo --list")
            )
    home = settings.home / "demo"
    shutil.rmtree(home / "broker", ignore_errors=True)
    with step("start a broker for the demonstration") as report_progress:
        jars = ensure_jars(
            settings.jars,
            ["kafka"],
            lambda done, total, jar: report_progress(f"jar {done} of {total}: {jar}"),
        )
        broker = LocalBroker.in_directory(home / "broker", jars).start()
    try:
        with ExitStack() as exit_stack:
            with step("start Spark for the demonstration") as report_progress:
                session = exit_stack.enter_context(open_command_spark(settings, "demo", report_progress))
            for name in names:
                with step(name) as report_progress:
                    result = run_demo(name, session, broker.bootstrap, home / name, report_progress)
                    finished_demo = write_demo_files(result, home / name if out is None else out)
                yield finished_demo
    finally:
        broker.stop()


def write_demo_files(result: DemoResult, folder: Path) -> FinishedDemo:
    """Write the page and the diagram of a demonstration."""
    folder.mkdir(parents=True, exist_ok=True)
    finished_demo = FinishedDemo(
        result, folder / f"{result.plan.name}.md", folder / f"{result.plan.name}.svg"
    )
    finished_demo.picture.write_text(
        render_pane_diagram(build_scene(result.run_data, result.demo.key)), "utf-8"
    )
    finished_demo.page.write_text(render_page(result), "utf-8")
    return finished_demo


def render_index(names: Sequence[str]) -> str:
    """Return the page with all diagrams."""
    return "\n".join(iter_index_lines(names)) + "\n"


def iter_index_lines(names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the page with all diagrams."""
    yield INTRODUCTION
    for name in names:
        first_paragraph = " ".join(catalog.read_description(name).partition("\n\n")[0].split())
        yield ""
        yield f"## [{name}]({name}.md)"
        yield first_paragraph
        yield ""
        yield f"![Panes of {name}]({name}.svg)"
        yield ""
        yield f"`penstock demo {name}`"
