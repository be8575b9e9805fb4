"""Compares every batch of Spark's DStream operations with their equivalents in Penstock."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tests.comparisons.dstreams.normalization import normalize_dstream_batches, normalize_panes
from tests.comparisons.dstreams.on_dstreams import ElementCounts, run_verbs_in_dstreams
from tests.comparisons.dstreams.on_penstock import run_verbs_here
from tests.comparisons.dstreams.verbs_page import read_verbs
from tests.comparisons.report import ComparisonReport, describe_equality

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BatchElementPairs = Mapping[str, tuple[list[ElementCounts], list[ElementCounts]]]


def compare_verbs(
    session: "SparkSession", _root: Path, folder: Path, report_progress: Callable[[str], None]
) -> ComparisonReport:
    """Run every operation of the page in both systems."""
    report_progress(f"{len(read_verbs())} operations in Spark")
    dstream_batches = run_verbs_in_dstreams(session, folder / "dstreams")
    verb_panes = run_verbs_here(session, folder / "here", report_progress)
    return summarize_batches(
        {
            verb: (
                normalize_dstream_batches(verb, dstream_batches[verb]),
                normalize_panes(verb, verb_panes[verb]),
            )
            for verb in read_verbs()
        }
    )


def summarize_batches(batches_by_verb: BatchElementPairs) -> ComparisonReport:
    """Summarize for each operation whether all batches are equal."""
    rows = [
        (
            verb,
            len(dstream_batches),
            sum(batch.total() for batch in dstream_batches),
            describe_equality(dstream_batches == our_batches),
        )
        for verb, (dstream_batches, our_batches) in batches_by_verb.items()
    ]
    columns = ("verb", "batches", "elements", "DStreams and here")
    return ComparisonReport(columns, rows, list(iter_page_lines(batches_by_verb)))


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
