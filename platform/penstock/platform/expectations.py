"""What is expected of tables, checked at rest: as people and Dagster's checks ask for it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines import catalog
from penstock.pipelines.batch.tables import folder_of
from penstock.pipelines.plan import Plan
from penstock.platform.audit import Tell
from penstock.platform.clock import now_ms
from penstock.platform.control import open_control
from penstock.platform.local_spark import spark_session
from penstock.platform.settings import Settings
from penstock.platform.streams import sound_plans
from penstock.quality.audit.tables import milliseconds, opened_table
from penstock.quality.errors import NoSuiteError
from penstock.quality.expectations.at_rest import batches_due, check_table
from penstock.quality.expectations.outcome import Outcome, Outcomes
from penstock.quality.expectations.page import Shown, publish
from penstock.quality.expectations.suite import Suite, load_suite, suite_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def suites() -> tuple[Suite, ...]:
    """Every suite that there is."""
    found = (load_suite(about) for about in suite_names())
    return tuple(suite for suite in found if suite is not None)


def table_suites() -> dict[str, tuple[Suite, Plan]]:
    """The suites of tables that a pipeline of the catalog writes, each with its pipeline."""
    written = {
        f"{folder_of(sink)}/{sink.table}": plan
        for plan in sound_plans()
        for stage in plan.stages
        for sink in stage.sinks
    }
    return {suite.about: (suite, written[suite.about]) for suite in suites() if suite.about in written}


def watermarks(settings: Settings, streams: Sequence[str]) -> dict[str, int | None]:
    """The watermark of each stream after its last batch; None where it has none yet."""
    store = open_control(settings.control_url)
    try:
        last = {stream: store.last_batch(stream) for stream in streams}
    finally:
        store.close()
    return {stream: None if batch is None else batch.watermark_ms for stream, batch in last.items()}


def check_tables(settings: Settings, wanted: Sequence[str], tell: Tell) -> dict[str, list[Outcome]]:
    """Check what is due of some tables, and publish the page. NoSuiteError for one of which nothing is expected."""
    known = table_suites()
    for about in wanted:
        if about not in known:
            raise NoSuiteError(f"nothing is expected of {about!r}; there are suites of {', '.join(known)}")
    marks = watermarks(settings, [known[about][1].name for about in wanted])
    checked: dict[str, list[Outcome]] = {}
    with ExitStack() as opened:

        @cache
        def session() -> "SparkSession":
            return opened.enter_context(spark_session(settings, "expectations", tell))

        for about in wanted:
            suite, plan = known[about]
            tell(about)
            place = Path(settings.warehouse)
            mark = marks[plan.name]
            checked[about] = check_table(session, suite, plan, mark, place, settings.home, now_ms)
    publish_page(settings)
    return checked


def publish_page(settings: Settings) -> Path:
    """Write the page of all suites and of what came of them, and return where it is."""
    shown = [
        Shown(suite, list(Outcomes(settings.home, suite.about).all()), _broken_of(settings, suite))
        for suite in suites()
    ]
    return publish(settings.home / "quality" / "docs", shown)


def _broken_of(settings: Settings, suite: Suite) -> dict[str, int]:
    return {} if suite.of_topic is None else broken_within(settings, suite.of_topic, DAY_MS)


def newest(settings: Settings, about: str) -> Outcome | None:
    """The last batch of a table that was checked."""
    return Outcomes(settings.home, about).newest()


def due_tables(settings: Settings) -> Iterator[tuple[str, int]]:
    """Yield the tables that have something to be checked, with the time or version up to which they have."""
    known = table_suites()
    marks = watermarks(settings, [plan.name for _, plan in known.values()])
    for about, (suite, plan) in known.items():
        kept = Outcomes(settings.home, about)
        batches = batches_due(suite, plan, marks[plan.name], Path(settings.warehouse), kept)
        if batches:
            yield about, batches[-1].upto


def shown_suites() -> tuple[Suite, ...]:
    """The suites whose topic or table is there to be shown."""
    return tuple(suite for suite in suites() if suite.of_topic is not None or suite.about in table_suites())


DAY_MS = 86_400_000


def broken_within(settings: Settings, topic: str, span_ms: int) -> dict[str, int]:
    """How many records of a topic broke each of its checks lately, as that stream counts which counts the most."""
    found: dict[str, int] = {}
    since = now_ms() - span_ms
    for stream in catalog.names():
        table = opened_table(Path(settings.warehouse) / "checks" / stream)
        if table is not None:
            rows = pa.table(table.to_pyarrow_table(columns=["topic", "check", "records", "batch_clock"]))
            late = pc.greater_equal(milliseconds(rows.column("batch_clock")), since)
            ours = rows.filter(pc.and_(late, pc.equal(rows.column("topic"), topic)))
            counted = ours.group_by("check").aggregate([("records", "sum")]).to_pylist()
            for row in counted:
                found[row["check"]] = max(found.get(row["check"], 0), row["records_sum"])
    return found
