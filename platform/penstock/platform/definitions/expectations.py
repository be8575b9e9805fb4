"""What is expected, in Dagster: a check for each expectation of a table or a topic, made on final windows only."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetKey,
    DefaultSensorStatus,
    Definitions,
    MetadataValue,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
    multi_asset_check,
)

from penstock.platform.definitions.names import SPARK
from penstock.platform.definitions.scheduled import failed, guarded, scheduled_checks, stays
from penstock.platform.definitions.told import TOLD, told_up_to
from penstock.platform.expectations import Checked
from penstock.platform.host.pages import link
from penstock.quality.expectations.outcome import Met, Outcome
from penstock.quality.expectations.suite import Expectation, Suite

JOB = "check_tables"
EVERY_NIGHT = "30 3 * * *"
EVERY_SECONDS = 300
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Checking:
    """What the definitions ask for, when a run or a sensor wants it and never at load."""

    check: Callable[[Sequence[str]], Mapping[str, Checked]]
    """Checks what is due of some tables."""
    since: Callable[[str, int], Sequence[Outcome]]
    """What came of the batches of a table that were checked after a time; the last one where none was."""
    due: Callable[[], Iterator[tuple[str, int]]]
    """The tables that have something to be checked, and up to when."""
    broken: Callable[[str], Mapping[str, int]]
    """How many records of a topic broke each of its checks within a day."""
    now_ms: Callable[[], int]
    page: Path = Path()
    """Where the page of all that is expected is."""
    served: str = ""
    """The address of the folder above the page's, where a browser finds it; empty where there is none."""
    where: Callable[[str, Expectation], Sequence[str]] = lambda _topic, _one: ()
    """Some places where records of a topic broke one of its checks."""


def expectation_definitions(suites: Sequence[Suite], checking: Checking) -> Definitions:
    """A check of each expectation, a job that makes those of tables, and when it runs."""
    tables = [suite for suite in suites if suite.of_topic is None]
    topics = [suite for suite in suites if suite.of_topic is not None]
    checks = [_table_checks(tables, checking)] if tables else []
    checks += [_topic_checks(topics, checking)] if topics else []
    scheduled = scheduled_checks(
        checks,
        job=JOB,
        says="Check what is expected of tables, in the windows that became final since the last time.",
        schedule="nightly_checks",
        cron=EVERY_NIGHT,
    )
    return Definitions.merge(scheduled, Definitions(sensors=[_sensor(checking)]))


def asset_of(suite: Suite) -> AssetKey:
    """The asset that a suite is about."""
    return AssetKey(suite.about.split("/"))


def _specs(suites: Sequence[Suite]) -> list[AssetCheckSpec]:
    return [
        AssetCheckSpec(one.name, asset=asset_of(suite), description=_description(one))
        for suite in suites
        for one in suite.expectations
    ]


def _description(one: Expectation) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in one.kwargs.items())
    return f"{one.type}({arguments}). {one.why}"


def _table_checks(suites: Sequence[Suite], checking: Checking) -> AssetChecksDefinition:
    @multi_asset_check(name="expectations_of_tables", specs=_specs(suites), can_subset=True, pool=SPARK)
    @stays
    def check(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        keys = sorted(context.selected_asset_check_keys)
        abouts = list(dict.fromkeys("/".join(key.asset_key.path) for key in keys))
        checked = checking.check(abouts)
        for about in abouts:
            came = checked.get(about)
            for key in (key for key in keys if "/".join(key.asset_key.path) == about):
                told = told_up_to(context.instance, key)
                if isinstance(came, Exception):
                    yield failed(key, came, {TOLD: told})
                else:
                    yield _of_table(key, checking.since(about, told), checking)

    return check


def on_page(checking: Checking, key: AssetCheckKey) -> dict[str, MetadataValue]:
    """The place on the page where it is told what came of a check, with the columns and what was before."""
    return to_open(checking, "page", checking.page, f"#{'/'.join(key.asset_key.path)}-{key.name}")


def to_open(checking: Checking, name: str, file: Path, place: str = "") -> dict[str, MetadataValue]:
    """A file as a link that can be followed, and where it is; alone the latter where no browser finds it."""
    path: MetadataValue = MetadataValue.path(f"{file}{place}")
    folder = checking.page.parent.parent
    if not checking.served or not file.is_relative_to(folder):
        return {name: path}
    return {name: MetadataValue.url(link(checking.served, folder, file) + place), f"{name}_file": path}


def _of_table(key: AssetCheckKey, outcomes: Sequence[Outcome], checking: Checking) -> AssetCheckResult:
    found = [(outcome, one) for outcome in outcomes for one in outcome.met if one.name == key.name]
    wrong = [pair for pair in found if not pair[1].passed]
    metadata = _metadata(*(wrong or found)[-1], checking) if found else {"state": "no window is final yet"}
    metadata |= {TOLD: max(outcome.at_ms for outcome in outcomes)} if outcomes else {}
    metadata |= {"batches_not_as_expected": len(wrong), "batches": len(found)} if len(found) > 1 else {}
    return AssetCheckResult(
        passed=not wrong,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=AssetCheckSeverity.ERROR,
        metadata={**metadata, **on_page(checking, key)},
    )


def _metadata(outcome: Outcome, one: Met, checking: Checking) -> dict[str, Any]:
    told: dict[str, Any] = {
        "batch": outcome.batch.label,
        "checked_rows": one.checked,
        "unexpected_rows": one.unexpected,
    }
    told |= {"observed": None if one.observed is None else str(one.observed), "problem": one.problem}
    if one.examples:
        told["examples"] = MetadataValue.json(list(one.examples))
    if one.rows is not None:
        told |= to_open(checking, "rows", Path(one.rows))
    return {name: value for name, value in told.items() if value is not None}


def _topic_checks(suites: Sequence[Suite], checking: Checking) -> AssetChecksDefinition:
    by_name = {(suite.of_topic, one.name): one for suite in suites for one in suite.expectations}

    @multi_asset_check(name="expectations_of_topics", specs=_specs(suites), can_subset=True)
    @stays
    def check(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        for key in sorted(context.selected_asset_check_keys):
            one = by_name[key.asset_key.path[-1], key.name]
            yield guarded(key, partial(_of_topic, key, one, checking))

    return check


def _of_topic(key: AssetCheckKey, one: Expectation, checking: Checking) -> AssetCheckResult:
    topic = key.asset_key.path[-1]
    count = checking.broken(topic).get(key.name, 0)
    return AssetCheckResult(
        passed=count == 0,
        asset_key=key.asset_key,
        check_name=key.name,
        severity=AssetCheckSeverity.ERROR if one.action == "stop" else AssetCheckSeverity.WARN,
        metadata={
            "records_of_a_day": count,
            "action": str(one.action),
            "examples": MetadataValue.json(list(checking.where(topic, one)) if count else []),
            **on_page(checking, key),
            "look": _look(topic, one),
        },
    )


def _look(topic: str, one: Expectation) -> str:
    """The command that shows more: records that are set aside, or the batches that held others."""
    if one.action == "quarantine":
        return f"penstock quarantine list {topic} --reason check:{one.name}"
    return "penstock table show STREAM --kind checks"


def _sensor(checking: Checking) -> SensorDefinition:
    def evaluate(context: SensorEvaluationContext) -> RunRequest | SkipReason:
        due = dict(checking.due())
        if not due:
            return SkipReason("no window became final since tables were checked")
        hour = str(checking.now_ms() // HOUR_MS)
        if context.cursor == hour:
            return SkipReason("tables were checked within this hour; Spark is not started for every window")
        context.update_cursor(hour)
        return RunRequest(run_key=f"{JOB}-{hour}")

    return SensorDefinition(
        name="final_windows",
        evaluation_fn=evaluate,
        job_name=JOB,
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
        description="Has tables checked when windows became final, once an hour at most.",
    )
