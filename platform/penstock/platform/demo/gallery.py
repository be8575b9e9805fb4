"""Demonstrations, one after the other, on one broker and in one Spark session; pages and pictures of each."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker
from penstock.pipelines import catalog
from penstock.pipelines.pictures import picture, scene
from penstock.platform.demo.beside import BESIDE
from penstock.platform.demo.page import page
from penstock.platform.demo.run import Ran, Tell, run_demo
from penstock.platform.errors import UnknownStreamError
from penstock.platform.local_spark import spark_session
from penstock.platform.settings import Settings

INTRODUCTION = """\
# Gallery
The shipped pipelines at work. Across is event time, upwards processing time. A dot is a record, the blue line the
watermark, a bar a pane as wide as its window: early, on time, or late. Were nothing ever late, all dots would lie
on the dashed line. A picture shows one key, or all where little is told; a page has the four questions, the result,
what is expected of it, and the definition. The line below a picture makes it again, from nothing, and the same to
the last dot: its input comes from a seed, its clock is that of the input.

`penstock demo --all --out pipelines/docs/gallery` makes all of it. What others have taught is shown beside ours by
`penstock demo beam` ([Apache Beam](../beam.md)), `dstreams` ([Spark's DStreams](../dstreams.md)) and
`record_at_a_time` ([Spark's real-time mode](../record_at_a_time.md))."""

Step = Callable[[str], AbstractContextManager[Tell]]


@dataclass(frozen=True)
class Shown:
    """A demonstration that is over, and where to look."""

    ran: Ran
    page: Path
    picture: Path


def demonstrate(settings: Settings, names: Sequence[str], out: Path | None, step: Step) -> Iterator[Shown]:
    """Yield each demonstration when it is over; without a folder its page is beside its tables."""
    for name in names:
        if name not in catalog.names():
            raise UnknownStreamError(
                f"there is no pipeline {name!r} to show; there are: {', '.join((*catalog.names(), *BESIDE))}"
            )
    home = settings.home / "demo"
    shutil.rmtree(home / "broker", ignore_errors=True)
    with step("a broker of the demonstration's own") as tell:
        jars = ensure_jars(
            settings.jars, ["kafka"], lambda done, total, jar: tell(f"jar {done} of {total}: {jar}")
        )
        broker = LocalBroker.in_directory(home / "broker", jars).start()
    try:
        with spark_session(settings, "demo") as session:
            for name in names:
                with step(name) as tell:
                    ran = run_demo(name, session, broker.bootstrap, home / name, tell)
                    shown = written(ran, home / name if out is None else out)
                yield shown
    finally:
        broker.stop()


def written(ran: Ran, folder: Path) -> Shown:
    """Write the page and the picture of a demonstration."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = Shown(ran, folder / f"{ran.plan.name}.md", folder / f"{ran.plan.name}.svg")
    shown.picture.write_text(picture(scene(ran.told, ran.demo.key)), "utf-8")
    shown.page.write_text(page(ran), "utf-8")
    return shown


def index(names: Sequence[str]) -> str:
    """Return the page that shows all pictures."""
    return "\n".join(index_lines(names)) + "\n"


def index_lines(names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the page that shows all pictures."""
    yield INTRODUCTION
    for name in names:
        first = " ".join(catalog.about(name).partition("\n\n")[0].split())
        yield ""
        yield f"## [{name}]({name}.md)"
        yield first
        yield ""
        yield f"![Panes of {name}]({name}.svg)"
        yield ""
        yield f"`penstock demo {name}`"
