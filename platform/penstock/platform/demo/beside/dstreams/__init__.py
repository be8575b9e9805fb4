"""Each verb of Spark's DStreams and its line here, as the page of verbs has them, over the same batches."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from penstock.platform.demo.beside.compared import Compared, Setting, in_words
from penstock.platform.demo.beside.dstreams.comparing import of_ours, of_theirs
from penstock.platform.demo.beside.dstreams.here import by_this_platform
from penstock.platform.demo.beside.dstreams.page import PAGE, verbs
from penstock.platform.demo.beside.dstreams.there import Elements, in_dstreams
from penstock.platform.local_spark import spark_session

Said = Mapping[str, tuple[list[Elements], list[Elements]]]


def run(setting: Setting) -> Compared:
    """Run the page both ways, and write down what both said of each batch."""
    shutil.rmtree(setting.folder, ignore_errors=True)
    setting.folder.mkdir(parents=True)
    with spark_session(setting.settings, "demo") as session:
        with setting.step(f"{len(verbs())} verbs by DStreams"):
            theirs = in_dstreams(session, setting.folder / "dstreams")
        with setting.step("the same here") as tell:
            ours = by_this_platform(session, setting.folder / "here", tell)
    return compared(side_by_side(theirs, ours), setting.folder / "dstreams.md")


def side_by_side(theirs: Mapping[str, list[Elements]], ours: Mapping[str, pa.Table]) -> Said:
    """Return what both say of each batch, by verb."""
    return {verb: (of_theirs(verb, theirs[verb]), of_ours(verb, ours[verb])) for verb in verbs()}


def compared(said: Said, page: Path) -> Compared:
    """Say of each verb whether both said the same of every batch, and write all of it into a page."""
    page.write_text("\n".join(lines(said)) + "\n", "utf-8")
    rows = [
        (verb, len(there), sum(batch.total() for batch in there), in_words(there == here))
        for verb, (there, here) in said.items()
    ]
    return Compared(
        columns=("verb", "batches", "elements", "DStreams and here"),
        rows=rows,
        said="A batch of theirs is a window of the clock here; a count of nothing is no row.",
        equal=all(there == here for there, here in said.values()),
        result=page,
        page=PAGE,
    )


def lines(said: Said) -> Iterator[str]:
    """Yield the page: what both said of each batch."""
    yield "# What the DStream verbs say of each batch, there and here"
    for verb, both in said.items():
        yield from ("", f"## {verb}", "| second | DStreams | here |", "|---|---|---|")
        for second, each in enumerate(zip(*both, strict=True)):
            yield f"| {second} | {' | '.join(map(in_a_cell, each))} |"


def in_a_cell(batch: Elements) -> str:
    """Return the elements of a batch, in order."""
    return "<br>".join(", ".join(map(str, element)) for element in sorted(batch.elements(), key=str))
