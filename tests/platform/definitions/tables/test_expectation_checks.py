"""A check for each expectation, with counts, examples and rows."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from dagster import (
    AssetCheckEvaluation,
    AssetCheckSeverity,
    AssetMaterialization,
    AssetSpec,
    Definitions,
    RunRequest,
    SkipReason,
    build_sensor_context,
)
from pyarrow import ArrowInvalid
from tests.quality.expectations.test_table_checks import FAILED, NOON, PASSED, build_result

from penstock.platform.definitions.tables.check_services import CheckServices
from penstock.platform.definitions.tables.expectation_checks import (
    CHECK_TABLES_JOB,
    build_expectation_definitions,
    suite_asset_key,
)
from penstock.platform.services.expectations import TableCheckOutcome
from penstock.quality.errors import SuiteError
from penstock.quality.expectations.check_results import BatchCheckResult, ExpectationResult
from penstock.quality.expectations.suite import Expectation, Suite

TABLE = Suite(
    "latest/minutes",
    tuple(Expectation(evaluation.type, {"column": "n"}, evaluation.name) for evaluation in (PASSED, FAILED)),
)
TOPIC = Suite(
    "topics/sensors",
    (Expectation("expect_x", {}, "warm", "warn"), Expectation("expect_y", {}, "known", "stop")),
)
UNREADABLE = Suite("topics/damaged", (Expectation("expect_w", {}, "lost", "warn"),))
MET = dataclasses.replace(FAILED, passed=True)
SILENT = Suite("latest/silent", (Expectation("expect_z", {}, "z"),))


def build_definitions(
    checked: dict[str, TableCheckOutcome],
    due: list[tuple[str, int]],
    now_ms: int = NOON,
    page: Path = Path("/docs/index.html"),
    served: str = "",
) -> Definitions:
    """Build definitions over results of batches, or over the problem of a table."""

    def check(subjects: Sequence[str]) -> dict[str, TableCheckOutcome]:
        return {subject: checked.get(subject, []) for subject in subjects}

    def read_results_since(subject: str, at_ms: int) -> list[BatchCheckResult]:
        results = checked.get(subject, [])
        assert isinstance(results, list)
        return [evaluation for evaluation in results if evaluation.at_ms > at_ms] or results[-1:]

    def count_broken(topic: str) -> dict[str, int]:
        if topic == "damaged":
            raise ArrowInvalid("a file is not what it was")
        return {"known": 3}

    def list_examples(topic: str, evaluation: Expectation) -> list[str]:
        return [f"{topic}: {evaluation.name}"]

    services = CheckServices(
        check,
        read_results_since,
        lambda: iter(due),
        count_broken,
        lambda: now_ms,
        page,
        served,
        list_examples,
    )
    suites = [TABLE, TOPIC, SILENT, UNREADABLE]
    assets = Definitions(assets=[AssetSpec(suite_asset_key(suite)) for suite in suites])
    return Definitions.merge(assets, build_expectation_definitions(suites, services))


def test_every_expectation_has_a_check_with_counts_examples_and_rows(instance) -> None:
    defs = build_definitions(
        {"latest/minutes": [build_result(NOON, PASSED, FAILED), build_result(NOON + 1, PASSED)]}, []
    )
    instance.report_runless_asset_event(AssetMaterialization(["latest", "silent"]))
    result = defs.resolve_job_def(CHECK_TABLES_JOB).execute_in_process(instance=instance)
    evaluations = {
        (evaluation.asset_key.path[-1], evaluation.check_name): evaluation
        for evaluation in result.get_asset_check_evaluations()
    }
    assert {key: evaluation.passed for key, evaluation in evaluations.items()} == {
        ("minutes", "n_between"): True,
        ("minutes", "n_set"): False,
        ("silent", "z"): False,
        ("sensors", "warm"): True,
        ("sensors", "known"): False,
        ("damaged", "lost"): False,
    }
    failed = evaluations["minutes", "n_set"].metadata
    assert (failed["unexpected_rows"].value, failed["checked_rows"].value) == (2, 5)
    assert failed["examples"].data == [{"n": 7, "device": "<b>"}]
    assert failed["rows"].path == "/rows.jsonl"
    assert failed["page"].path == "/docs/index.html#latest/minutes-n_set"
    assert evaluations["sensors", "warm"].metadata["page"].path == "/docs/index.html#topics/sensors-warm"
    silent = evaluations["silent", "z"]
    assert (silent.severity, silent.metadata["state"].text) == (AssetCheckSeverity.WARN, "not checked yet")
    assert evaluations["sensors", "known"].severity is AssetCheckSeverity.ERROR
    assert evaluations["sensors", "known"].metadata["records_of_a_day"].value == 3
    assert evaluations["sensors", "known"].metadata["examples"].data == ["sensors: known"]
    assert (
        evaluations["sensors", "known"].metadata["command"].text == "penstock table show STREAM --kind checks"
    )
    assert evaluations["sensors", "warm"].metadata["examples"].data == []


def test_a_check_links_to_served_pages(instance) -> None:
    rows = Path("/home/quality/latest-minutes/final-1/n_set.jsonl")
    failed = dataclasses.replace(FAILED, rows=str(rows))
    evaluations = run_checks(
        build_definitions(
            {"latest/minutes": [build_result(NOON, failed)]},
            [],
            page=Path("/home/quality/docs/index.html"),
            served="http://127.0.0.1:9464/quality/",
        ),
        instance,
    )
    shown = evaluations["n_set"].metadata
    assert shown["page"].url == "http://127.0.0.1:9464/quality/docs/index.html#latest/minutes-n_set"
    assert shown["rows"].url == "http://127.0.0.1:9464/quality/latest-minutes/final-1/n_set.jsonl"
    assert shown["rows_file"].path == str(rows)
    assert evaluations["warm"].metadata["page"].url.endswith("#topics/sensors-warm")


def test_an_invalid_suite_fails_only_its_own_checks(instance) -> None:
    refused = SuiteError(
        "minutes.yaml", "n_set", "unknown expectation expect_luck", "See the library's own list"
    )
    result = (
        build_definitions({"latest/minutes": refused}, [])
        .resolve_job_def(CHECK_TABLES_JOB)
        .execute_in_process(instance=instance)
    )
    evaluations = {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}
    assert [name for name, evaluation in evaluations.items() if not evaluation.passed] == [
        "n_between",
        "n_set",
        "lost",
        "known",
    ]
    assert evaluations["n_set"].metadata["problem"].text == str(refused)


def test_an_unreadable_table_fails_only_its_own_checks(instance) -> None:
    outcomes: dict[str, TableCheckOutcome] = {
        "latest/minutes": [build_result(NOON, PASSED)],
        "latest/silent": ArrowInvalid("a file is not what it was"),
    }
    evaluations = run_checks(build_definitions(outcomes, []), instance)
    assert {name: evaluation.passed for name, evaluation in evaluations.items()} == {
        "n_between": True, "z": False, "warm": True, "known": False, "lost": False,
    }  # fmt: skip
    for name in ("z", "lost"):
        assert evaluations[name].description == "could not run: a file is not what it was"


def run_checks(defs: Definitions, instance) -> dict[str, AssetCheckEvaluation]:
    result = defs.resolve_job_def(CHECK_TABLES_JOB).execute_in_process(instance=instance)
    assert result.success
    return {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}


def build_result_at(at_ms: int, *results: ExpectationResult) -> BatchCheckResult:
    return dataclasses.replace(build_result(at_ms, *results), at_ms=at_ms)


def test_each_result_is_reported_once(instance) -> None:
    """The next run also reports batches that were checked elsewhere or whose run was lost."""
    results: dict[str, TableCheckOutcome] = {
        "latest/minutes": [build_result_at(NOON, PASSED, FAILED), build_result_at(NOON + 1, PASSED, MET)]
    }
    first = run_checks(build_definitions(results, []), instance)
    assert (first["n_set"].passed, first["n_set"].metadata["batches"].value) == (False, 2)
    repeated = run_checks(build_definitions(results, []), instance)
    assert repeated["n_set"].passed
    assert "batches" not in repeated["n_set"].metadata
    unreadable: dict[str, TableCheckOutcome] = {"latest/minutes": ArrowInvalid("away for a moment")}
    assert not run_checks(build_definitions(unreadable, []), instance)["n_set"].passed
    outcomes = results["latest/minutes"]
    assert isinstance(outcomes, list)
    outcomes += [build_result_at(NOON + 2, FAILED), build_result_at(NOON + 3, MET)]
    after = run_checks(build_definitions(results, []), instance)
    assert (after["n_set"].passed, after["n_set"].metadata["batches_failed"].value) == (False, 1)


def test_tables_with_final_windows_are_checked_at_most_hourly() -> None:
    def evaluate(due: list[tuple[str, int]], cursor: str | None, now_ms: int) -> RunRequest | SkipReason:
        (sensor,) = build_definitions({}, due, now_ms).sensors or []
        return sensor._raw_fn(build_sensor_context(cursor=cursor))

    hour = str(NOON // 3_600_000)
    assert isinstance(evaluate([], None, NOON), SkipReason)
    assert evaluate([("latest/minutes", 5)], None, NOON).run_key == f"{CHECK_TABLES_JOB}-{hour}"
    assert isinstance(evaluate([("latest/minutes", 5)], hour, NOON), SkipReason)
    assert isinstance(evaluate([("latest/minutes", 5)], hour, NOON + 3_600_000), RunRequest)
