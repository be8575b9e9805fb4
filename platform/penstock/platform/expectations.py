"""What is expected of tables, checked at rest: as people and Dagster's checks ask for it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines import catalog
from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.plan import Plan
from penstock.pipelines.spark.checks import REASON
from penstock.pipelines.tables.places import result_of
from penstock.platform.audit import Tell
from penstock.platform.clock import now_ms
from penstock.platform.control import open_control
from penstock.platform.described import columns_of, owner_of
from penstock.platform.host.pages import folder_of
from penstock.platform.local_spark import spark_session
from penstock.platform.settings import Settings
from penstock.platform.streams import sound_plans
from penstock.quality.audit.tables import milliseconds, opened_table, read
from penstock.quality.errors import DamagedTableError, NoSuiteError, QualityError, SuiteError
from penstock.quality.expectations.at_rest import batches_due, check_table
from penstock.quality.expectations.library import EXAMPLES
from penstock.quality.expectations.outcome import Outcome, Outcomes
from penstock.quality.expectations.page import Shown, publish
from penstock.quality.expectations.suite import TOPICS, Expectation, Suite, load_suite, suite_names
from penstock.quality.quarantine.records import quarantined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Checked = list[Outcome] | Exception
"""What came of the batches of a table, or why it could not be checked: its suite, or the table itself."""


@dataclass(frozen=True)
class Suites:
    """What the files of suites say: those that can be used, and of each other one why it cannot."""

    sound: tuple[Suite, ...]
    broken: Mapping[str, SuiteError]


def all_suites() -> Suites:
    """Every suite that there is; one that cannot be used is the trouble of its own topic or table only."""
    sound, broken = [], {}
    for about in suite_names():
        try:
            suite = load_suite(about)
        except SuiteError as problem:
            broken[about] = problem
        else:
            sound += [] if suite is None else [suite]
    return Suites(tuple(sound), broken)


def table_suites() -> dict[str, tuple[Suite, Plan]]:
    """The suites of tables that a pipeline of the catalog writes, each with its pipeline."""
    written = {
        result_of(sink): plan for plan in sound_plans() for stage in plan.stages for sink in stage.sinks
    }
    return {
        suite.about: (suite, written[suite.about]) for suite in all_suites().sound if suite.about in written
    }


def read_topics() -> set[str]:
    """The topics that a pipeline of the catalog reads: those alone are checked."""
    return {topic_of(source) for plan in sound_plans() for source in plan.sources}


def watermarks(settings: Settings, streams: Sequence[str]) -> dict[str, int | None]:
    """The watermark of each stream after its last batch; None where it has none yet."""
    store = open_control(settings.control_url, settings.control_secret)
    try:
        last = {stream: store.last_batch(stream) for stream in streams}
    finally:
        store.close()
    return {stream: None if batch is None else batch.watermark_ms for stream, batch in last.items()}


def check_tables(settings: Settings, wanted: Sequence[str], tell: Tell) -> dict[str, Checked]:
    """Check what is due of some tables, and publish the page.

    A table that cannot be checked, or whose suite cannot be used, has that for its answer, and the others are
    checked. NoSuiteError for a table of which nothing is expected.
    """
    known, broken = table_suites(), all_suites().broken
    for about in wanted:
        if about not in known and about not in broken:
            raise NoSuiteError(_why_not(about, known))
    marks = watermarks(settings, [known[about][1].name for about in wanted if about in known])
    checked: dict[str, Checked] = {}
    with ExitStack() as opened:

        @cache
        def session() -> "SparkSession":
            return opened.enter_context(spark_session(settings, "expectations", tell))

        for about in wanted:
            tell(about)
            if about not in known:
                checked[about] = broken[about]
                continue
            suite, plan = known[about]
            place, mark = settings.tables, marks[plan.name]
            try:
                checked[about] = check_table(session, suite, plan, mark, place, settings.home, now_ms)
            except Exception as problem:  # noqa: BLE001  # whatever it is, it is the answer to this table alone
                checked[about] = problem
    publish_page(settings)
    return checked


def _why_not(about: str, known: Collection[str]) -> str:
    """Say why there is nothing to check of a table that somebody names."""
    folder, _, name = about.partition("/")
    tables = f"there are suites of {', '.join(known)}"
    if about not in suite_names():
        return f"nothing is expected of {about!r}; {tables}"
    if folder == TOPICS:
        shown = "`penstock table show STREAM --kind checks` shows what came of it"
        return f"records of the topic {name!r} are checked as they are read: {shown}; {tables}"
    return f"there is a suite of {about!r}, and no pipeline that can be loaded writes such a table; {tables}"


def page_of(settings: Settings) -> Path:
    """Where the page is, once it was published."""
    return folder_of(settings) / "docs" / "index.html"


def plots_of(settings: Settings, about: str) -> Path:
    """Where the figures of a table are plotted, once they were."""
    return folder_of(settings) / "statistics" / f"{about}.html"


def publish_page(settings: Settings) -> Path:
    """Write the page of all suites and of what came of them, and return where it is."""
    known = all_suites()
    plans = {about: plan for about, (_, plan) in table_suites().items()}
    shown: list[Shown] = []
    topics = read_topics()
    trouble: dict[str, Exception] = dict(known.broken)
    for suite in known.sound:
        try:
            broken = _broken_of(settings, suite)
        except DamagedTableError as problem:
            trouble[suite.about] = problem
        else:
            kept = list(Outcomes(settings.home, suite.about).all())
            shown.append(
                Shown(
                    suite,
                    kept,
                    broken,
                    columns_of(suite, plans.get(suite.about)),
                    owner_of(settings, suite),
                    suite.of_topic is None or suite.of_topic in topics,
                    plots_of(settings, suite.about),
                )
            )
    return publish(page_of(settings).parent, shown, trouble)


def _broken_of(settings: Settings, suite: Suite) -> dict[str, int]:
    return {} if suite.of_topic is None else broken_within(settings, suite.of_topic, DAY_MS)


def newest(settings: Settings, about: str) -> Outcome | None:
    """The last batch of a table that was checked."""
    return Outcomes(settings.home, about).newest()


def told_since(settings: Settings, about: str, at_ms: int) -> list[Outcome]:
    """The batches of a table that were checked after a time, from old to young; the last one where none was."""
    kept = Outcomes(settings.home, about)
    young = sorted((one for one in kept.all() if one.at_ms > at_ms), key=lambda one: one.at_ms)
    last = kept.newest()
    return young or ([] if last is None else [last])


def due_tables(settings: Settings) -> Iterator[tuple[str, int]]:
    """Yield the tables that have something to be checked, with the time or version up to which they have.

    A table that cannot be opened is due: its check is who says it.
    """
    known = table_suites()
    marks = watermarks(settings, [plan.name for _, plan in known.values()])
    for about, (suite, plan) in known.items():
        kept = Outcomes(settings.home, about)
        try:
            batches = batches_due(suite, plan, marks[plan.name], settings.tables, kept)
        except QualityError:
            yield about, 0
            continue
        if batches:
            yield about, batches[-1].upto


def shown_suites() -> tuple[Suite, ...]:
    """The suites of tables that a pipeline writes, and of topics that one reads: others nobody checks."""
    checked = {*table_suites(), *(f"{TOPICS}/{topic}" for topic in read_topics())}
    return tuple(suite for suite in all_suites().sound if suite.about in checked)


DAY_MS = 86_400_000


def broken_within(settings: Settings, topic: str, span_ms: int) -> dict[str, int]:
    """How many records of a topic broke each of its checks lately, as that stream counts which counts the most."""
    found: dict[str, int] = {}
    for _, ours in _counted(settings, topic, now_ms() - span_ms):
        for row in ours.group_by("check").aggregate([("records", "sum")]).to_pylist():
            found[row["check"]] = max(found.get(row["check"], 0), row["records_sum"])
    return found


def where_broken(settings: Settings, topic: str, one: Expectation, span_ms: int = DAY_MS) -> list[str]:
    """Some places where records of a topic broke a check lately, the newest first.

    A record that was set aside has an address. Of one that was let through it is known which batch it came in.
    """
    if one.action == "quarantine":
        held = [each for each in quarantined(settings.tables, topic) if each.reason == f"{REASON}{one.name}"]
        held.sort(key=lambda each: (each.arrived is not None, each.arrived, each.place), reverse=True)
        return [f"{topic} {each.place}" for each in held[:EXAMPLES]]
    rows = [
        (row["batch_clock"], f"{stream}, batch {row['batch_id']}: {row['records']:,} records")
        for stream, ours in _counted(settings, topic, now_ms() - span_ms)
        for row in ours.to_pylist()
        if row["check"] == one.name
    ]
    return [told for _, told in sorted(rows, reverse=True)[:EXAMPLES]]


def _counted(settings: Settings, topic: str, since_ms: int) -> Iterator[tuple[str, pa.Table]]:
    """Yield what each stream counted of a topic's checks since a time."""
    for stream in catalog.names():
        path = settings.tables / "checks" / stream
        table = opened_table(path)
        if table is not None:
            rows = read(table, path, ["topic", "check", "records", "batch_id", "batch_clock"])
            late = pc.greater_equal(milliseconds(rows.column("batch_clock")), since_ms)
            yield stream, rows.filter(pc.and_(late, pc.equal(rows.column("topic"), topic)))
