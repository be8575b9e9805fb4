"""Checks of tables against their expectation suites, for the command line and Dagster's checks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.clock import now_ms
from penstock.core.display_path import display_path
from penstock.core.names import explain_unknown_name
from penstock.core.progress import ProgressReporter
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.parse.row_checks import CHECK_REASON_PREFIX
from penstock.pipelines import catalog
from penstock.platform.control import open_control_store
from penstock.platform.host.quality_pages import quality_folder
from penstock.platform.lineage.suite_metadata import describe_columns, find_owner
from penstock.platform.services.command_spark import open_command_spark
from penstock.platform.services.stream_catalog import load_valid_plans
from penstock.platform.settings import Settings
from penstock.quality.errors import DamagedTableError, NoSuiteError, QualityError, SuiteError
from penstock.quality.expectations.check_results import BatchCheckResult, CheckResultStore
from penstock.quality.expectations.gx_library import MAX_EXAMPLES
from penstock.quality.expectations.report_page import SuiteReport, write_report_page
from penstock.quality.expectations.suite import (
    SUITES_FOLDER,
    TOPICS_FOLDER,
    Expectation,
    Suite,
    list_suites,
    load_suite,
)
from penstock.quality.expectations.table_checks import check_table, list_due_batches
from penstock.quality.quarantine.quarantined_records import read_quarantine
from penstock.quality.table_reads import open_table, read_table, to_milliseconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


TableCheckOutcome = list[BatchCheckResult] | Exception
"""The results of a table's batches, or the error that prevented the check."""


@dataclass(frozen=True)
class LoadedSuites:
    """The valid suites, and the error of each invalid one."""

    suites: tuple[Suite, ...]
    errors_by_subject: Mapping[str, SuiteError]


def load_all_suites() -> LoadedSuites:
    """Load every suite. An invalid suite affects only its own topic or table."""
    suites, errors_by_subject = [], {}
    for subject in list_suites():
        try:
            suite = load_suite(subject)
        except SuiteError as error:
            errors_by_subject[subject] = error
        else:
            suites += [] if suite is None else [suite]
    return LoadedSuites(tuple(suites), errors_by_subject)


def load_table_suites() -> dict[str, tuple[Suite, Plan]]:
    """Load the suites of tables that a pipeline of the catalog writes, each with its plan."""
    plans_by_path = {
        sink.path: plan for plan in load_valid_plans() for stage in plan.stages for sink in stage.sinks
    }
    return {
        suite.subject: (suite, plans_by_path[suite.subject])
        for suite in load_all_suites().suites
        if suite.subject in plans_by_path
    }


def list_read_topics() -> set[str]:
    """List the topics that a pipeline of the catalog reads; only these are checked."""
    return {topic_of(source) for plan in load_valid_plans() for source in plan.sources}


def read_watermarks(settings: Settings, streams: Sequence[str]) -> dict[str, int | None]:
    """Return the watermark of each stream after its last batch; None if it has none yet."""
    store = open_control_store(settings.control_url, settings.control_secret)
    try:
        last_batches = {stream: store.read_last_batch(stream) for stream in streams}
    finally:
        store.close()
    return {stream: None if batch is None else batch.watermark_ms for stream, batch in last_batches.items()}


def check_tables(
    settings: Settings, subjects: Sequence[str], report_progress: ProgressReporter
) -> dict[str, TableCheckOutcome]:
    """Check the due batches of some tables, and publish the page.

    A table that cannot be checked has its error as outcome; the others are still checked. Raises NoSuiteError for
    a table without a suite.
    """
    suites_and_plans, suite_errors = load_table_suites(), load_all_suites().errors_by_subject
    for subject in subjects:
        if subject not in suites_and_plans and subject not in suite_errors:
            raise NoSuiteError(_explain_unchecked(subject, suites_and_plans))
    watermarks = read_watermarks(
        settings, [suites_and_plans[subject][1].name for subject in subjects if subject in suites_and_plans]
    )
    outcomes: dict[str, TableCheckOutcome] = {}
    with ExitStack() as exit_stack:

        @cache
        def session() -> "SparkSession":
            return exit_stack.enter_context(open_command_spark(settings, "expectations", report_progress))

        for subject in subjects:
            report_progress(subject)
            if subject not in suites_and_plans:
                outcomes[subject] = suite_errors[subject]
                continue
            suite, plan = suites_and_plans[subject]
            warehouse, watermark_ms = settings.warehouse_path, watermarks[plan.name]
            try:
                outcomes[subject] = check_table(
                    session, suite, plan, watermark_ms, warehouse, settings.home, now_ms
                )
            except Exception as error:  # noqa: BLE001  # any error is the outcome of this table only
                outcomes[subject] = error
    publish_suites_page(settings)
    return outcomes


def _explain_unchecked(subject: str, checked_tables: Collection[str]) -> str:
    """Return why a table cannot be checked, and what to do about it."""
    folder, _, name = subject.partition("/")
    if subject not in list_suites():
        return _explain_missing_suite(subject, checked_tables)
    if folder == TOPICS_FOLDER:
        return (
            f"records of the topic {name!r} are checked when a stream reads them; "
            "`penstock table show STREAM --kind checks` shows the results"
        )
    return f"the suite of {subject!r} exists, but no valid pipeline writes this table"


def _explain_missing_suite(subject: str, checked_tables: Collection[str]) -> str:
    """Say how to write a suite for a table that a pipeline writes; suggest a name for any other."""
    tables = {sink.path for plan in load_valid_plans() for stage in plan.stages for sink in stage.sinks}
    written_table = next(
        (table for table in sorted(tables) if subject in (table, table.partition("/")[2])), None
    )
    if written_table in checked_tables:
        return f"there is no table {subject!r}. Did you mean {written_table!r}?"
    if written_table is None:
        return explain_unknown_name("table", subject, tables, "penstock table list")
    example = "expectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: NAME}}]"
    return (
        f"nothing is expected of {written_table!r} yet. To check it, write "
        f"{display_path(SUITES_FOLDER / f'{written_table}.yaml')}, for example: {example}"
    )


def page_path(settings: Settings) -> Path:
    """Return the path of the page."""
    return quality_folder(settings) / "docs" / "index.html"


def plots_path(settings: Settings, subject: str) -> Path:
    """Return the path of a table's plots."""
    return quality_folder(settings) / "statistics" / f"{subject}.html"


def publish_suites_page(settings: Settings) -> Path:
    """Write the page of all suites and their results; return its path."""
    loaded_suites = load_all_suites()
    plans = {subject: plan for subject, (_, plan) in load_table_suites().items()}
    reports: list[SuiteReport] = []
    topics = list_read_topics()
    errors_by_subject: dict[str, Exception] = dict(loaded_suites.errors_by_subject)
    for suite in loaded_suites.suites:
        try:
            broken_counts = _count_broken_of_suite(settings, suite)
        except DamagedTableError as error:
            errors_by_subject[suite.subject] = error
        else:
            check_results = list(CheckResultStore(settings.home, suite.subject).read_all())
            reports.append(
                SuiteReport(
                    suite,
                    check_results,
                    broken_counts,
                    describe_columns(suite, plans.get(suite.subject)),
                    find_owner(settings, suite),
                    suite.topic is None or suite.topic in topics,
                    plots_path(settings, suite.subject),
                )
            )
    return write_report_page(page_path(settings).parent, reports, errors_by_subject)


def _count_broken_of_suite(settings: Settings, suite: Suite) -> dict[str, int]:
    return {} if suite.topic is None else count_broken_checks(settings, suite.topic, DAY_MS)


def find_newest_result(settings: Settings, subject: str) -> BatchCheckResult | None:
    """Return the result of the newest checked batch of a table, None if there is none."""
    return CheckResultStore(settings.home, subject).find_newest()


def list_results_since(settings: Settings, subject: str, since_ms: int) -> list[BatchCheckResult]:
    """List the results of batches that were checked after a time, oldest first; if there are none, the newest."""
    result_store = CheckResultStore(settings.home, subject)
    newer_results = sorted(
        (result for result in result_store.read_all() if result.at_ms > since_ms),
        key=lambda result: result.at_ms,
    )
    newest_result = result_store.find_newest()
    return newer_results or ([] if newest_result is None else [newest_result])


def list_due_tables(settings: Settings) -> Iterator[tuple[str, int]]:
    """Yield the tables with unchecked batches, and the time or version up to which these go.

    A table that cannot be opened is due, so that its check reports the error.
    """
    suites_and_plans = load_table_suites()
    watermarks = read_watermarks(settings, [plan.name for _, plan in suites_and_plans.values()])
    for subject, (suite, plan) in suites_and_plans.items():
        result_store = CheckResultStore(settings.home, subject)
        try:
            batches = list_due_batches(
                suite, plan, watermarks[plan.name], settings.warehouse_path, result_store
            )
        except QualityError:
            yield subject, 0
            continue
        if batches:
            yield subject, batches[-1].upto


def list_checked_suites() -> tuple[Suite, ...]:
    """List the suites of tables that a pipeline writes and of topics that one reads. Others are not checked."""
    checked_subjects = {*load_table_suites(), *(f"{TOPICS_FOLDER}/{topic}" for topic in list_read_topics())}
    return tuple(suite for suite in load_all_suites().suites if suite.subject in checked_subjects)


DAY_MS = 86_400_000


def count_broken_checks(settings: Settings, topic: str, span_ms: int) -> dict[str, int]:
    """Count the recent records of a topic that failed each check: the highest count of any stream."""
    counts_by_check: dict[str, int] = {}
    for _, check_rows in _read_check_counts(settings, topic, now_ms() - span_ms):
        for row in check_rows.group_by("check").aggregate([("records", "sum")]).to_pylist():
            counts_by_check[row["check"]] = max(counts_by_check.get(row["check"], 0), row["records_sum"])
    return counts_by_check


def find_broken_examples(
    settings: Settings, topic: str, expectation: Expectation, span_ms: int = DAY_MS
) -> list[str]:
    """List some recent records of a topic that failed a check, newest first.

    A quarantined record is listed by its position. For other records, only their batch is known.
    """
    if expectation.action == "quarantine":
        quarantined_records = [
            record
            for record in read_quarantine(settings.warehouse_path, topic)
            if record.reason == f"{CHECK_REASON_PREFIX}{expectation.name}"
        ]
        quarantined_records.sort(
            key=lambda record: (record.arrived_at is not None, record.arrived_at, record.position),
            reverse=True,
        )
        return [f"{topic} {record.position}" for record in quarantined_records[:MAX_EXAMPLES]]
    rows = [
        (row["batch_clock"], f"{stream}, batch {row['batch_id']}: {row['records']:,} records")
        for stream, check_rows in _read_check_counts(settings, topic, now_ms() - span_ms)
        for row in check_rows.to_pylist()
        if row["check"] == expectation.name
    ]
    return [example for _, example in sorted(rows, reverse=True)[:MAX_EXAMPLES]]


def _read_check_counts(settings: Settings, topic: str, since_ms: int) -> Iterator[tuple[str, pa.Table]]:
    """Yield each stream's counts of failed checks of a topic since a time."""
    for stream in catalog.pipeline_names():
        path = settings.warehouse_path / "checks" / stream
        table = open_table(path)
        if table is not None:
            rows = read_table(table, path, ["topic", "check", "records", "batch_id", "batch_clock"])
            is_recent = pc.greater_equal(to_milliseconds(rows.column("batch_clock")), since_ms)
            yield stream, rows.filter(pc.and_(is_recent, pc.equal(rows.column("topic"), topic)))
