"""Compares each DStream operation of Spark with its equivalent in Penstock, over the same batches."""

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
    """Run every operation of the page in both systems, and write a page with the results of each batch."""
    shutil.rmtree(setup.folder, ignore_errors=True)
    setup.folder.mkdir(parents=True)
    with open_command_spark(setup.settings, "demo") as session:
        with setup.step(f"run {len(read_verbs())} DStream operations in Spark"):
            dstream_batches = run_verbs_in_dstreams(session, setup.folder / "dstreams")
        with setup.step("run the equivalents in Penstock") as report_progress:
            verb_panes = run_verbs_here(session, setup.folder / "here", report_progress)
    return summarize_comparison(pair_batches(dstream_batches, verb_panes), setup.folder / "dstreams.md")


def pair_batches(
    dstream_batches: Mapping[str, list[ElementCounts]], verb_panes: Mapping[str, pa.Table]
) -> BatchElementPairs:
    """Return the elements of each batch in both systems, by operation."""
    return {
        verb: (
            normalize_dstream_batches(verb, dstream_batches[verb]),
            normalize_panes(verb, verb_panes[verb]),
        )
        for verb in read_verbs()
    }


def summarize_comparison(batches_by_verb: BatchElementPairs, page: Path) -> ComparisonResult:
    """Summarize for each operation whether all batches are equal, and write all of them to a page."""
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
        summary="A DStream batch is a processing-time window here; a count of zero gives no row.",
        is_equal=all(
            dstream_batches == our_batches for dstream_batches, our_batches in batches_by_verb.values()
        ),
        result=page,
        page=PAGE_PATH,
    )


def iter_page_lines(batches_by_verb: BatchElementPairs) -> Iterator[str]:
    """Yield the lines of the page with the elements of each batch."""
    yield "# The batches of DStream operations in Spark and in Penstock"
    for verb, batch_lists in batches_by_verb.items():
        yield from ("", f"## {verb}", "| second | DStreams | here |", "|---|---|---|")
        for second, batch_pair in enumerate(zip(*batch_lists, strict=True)):
            yield f"| {second} | {' | '.join(map(format_elements, batch_pair))} |"


def format_elements(batch: ElementCounts) -> str:
    """Format the elements of a batch, sorted."""
    return "<br>".join(", ".join(map(str, element)) for element in sorted(batch.elements(), key=str))
