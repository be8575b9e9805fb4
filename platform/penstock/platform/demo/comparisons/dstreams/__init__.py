"""Each verb of Spark's DStreams and its line here, as the page of verbs has them, over the same batches."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from penstock.platform.demo.comparisons.comparison import ComparisonResult, ComparisonSetup, describe_equality
from penstock.platform.demo.comparisons.dstreams.normalization import (
    normalize_dstream_batches,
    normalize_panes,
)
from penstock.platform.demo.comparisons.dstreams.on_dstreams import ElementCounts, run_verbs_in_dstreams
from penstock.platform.demo.comparisons.dstreams.on_penstock import run_verbs_here
from penstock.platform.demo.comparisons.dstreams.verbs_page import PAGE_PATH, read_verbs
from penstock.platform.services.command_spark import open_command_spark

BatchElementPairs = Mapping[str, tuple[list[ElementCounts], list[ElementCounts]]]


def run(setup: ComparisonSetup) -> ComparisonResult:
    """Run the page both ways, and write down what both said of each batch."""
    shutil.rmtree(setup.folder, ignore_errors=True)
    setup.folder.mkdir(parents=True)
    with open_command_spark(setup.settings, "demo") as session:
        with setup.step(f"{len(read_verbs())} verbs by DStreams"):
            dstream_batches = run_verbs_in_dstreams(session, setup.folder / "dstreams")
        with setup.step("the same here") as report_progress:
            verb_panes = run_verbs_here(session, setup.folder / "here", report_progress)
    return summarize_comparison(pair_batches(dstream_batches, verb_panes), setup.folder / "dstreams.md")


def pair_batches(
    dstream_batches: Mapping[str, list[ElementCounts]], verb_panes: Mapping[str, pa.Table]
) -> BatchElementPairs:
    """Return what both say of each batch, by verb."""
    return {
        verb: (
            normalize_dstream_batches(verb, dstream_batches[verb]),
            normalize_panes(verb, verb_panes[verb]),
        )
        for verb in read_verbs()
    }


def summarize_comparison(batches_by_verb: BatchElementPairs, page: Path) -> ComparisonResult:
    """Say of each verb whether both said the same of every batch, and write all of it into a page."""
    page.write_text("\n".join(iter_page_lines(batches_by_verb)) + "\n", "utf-8")
    rows = [
        (
            verb,
            len(dstream_batches),
            sum(batch.total() for batch in dstream_batches),
            describe_equality(dstream_batches == our_batches),
        )
        for verb, (dstream_batches, our_batches) in batches_by_verb.items()
    ]
    return ComparisonResult(
        columns=("verb", "batches", "elements", "DStreams and here"),
        rows=rows,
        summary="A batch of theirs is a window of the clock here; a count of nothing is no row.",
        is_equal=all(
            dstream_batches == our_batches for dstream_batches, our_batches in batches_by_verb.values()
        ),
        result=page,
        page=PAGE_PATH,
    )


def iter_page_lines(batches_by_verb: BatchElementPairs) -> Iterator[str]:
    """Yield the page: what both said of each batch."""
    yield "# What the DStream verbs say of each batch, there and here"
    for verb, batch_lists in batches_by_verb.items():
        yield from ("", f"## {verb}", "| second | DStreams | here |", "|---|---|---|")
        for second, batch_pair in enumerate(zip(*batch_lists, strict=True)):
            yield f"| {second} | {' | '.join(map(format_elements, batch_pair))} |"


def format_elements(batch: ElementCounts) -> str:
    """Return the elements of a batch, in order."""
    return "<br>".join(", ".join(map(str, element)) for element in sorted(batch.elements(), key=str))
