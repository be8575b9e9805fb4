"""What Dagster is told of expectations: a check each, with counts, examples, and the rows."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from dagster import (
    AssetCheckEvaluation,
    AssetCheckSeverity,
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
    "latest/minutes", tuple(Expectation(one.type, {"column": "n"}, one.name) for one in (PASSED, FAILED))
)
TOPIC = Suite(
    "topics/sensors",
    (Expectation("expect_x", {}, "warm", "warn"), Expectation("expect_y", {}, "known", "stop")),
)
LOST = Suite("topics/damaged", (Expectation("expect_w", {}, "lost", "warn"),))
WELL = dataclasses.replace(FAILED, passed=True)
OTHER = Suite("latest/silent", (Expectation("expect_z", {}, "z"),))


def definitions(
    checked: dict[str, TableCheckOutcome],
    due: list[tuple[str, int]],
    now_ms: int = NOON,
    page: Path = Path("/docs/index.html"),
    served: str = "",
) -> Definitions:
    """Definitions over what was kept of batches, or over what is the matter with a table."""

    def check(wanted: Sequence[str]) -> dict[str, TableCheckOutcome]:
        return {about: checked.get(about, []) for about in wanted}

    def since(about: str, at_ms: int) -> list[BatchCheckResult]:
        kept = checked.get(about, [])
        assert isinstance(kept, list)
        return [one for one in kept if one.at_ms > at_ms] or kept[-1:]

    def broken(topic: str) -> dict[str, int]:
        if topic == "damaged":
            raise ArrowInvalid("a file is not what it was")
        return {"known": 3}

    def where(topic: str, one: Expectation) -> list[str]:
        return [f"{topic}: {one.name}"]

    checking = CheckServices(check, since, lambda: iter(due), broken, lambda: now_ms, page, served, where)
    suites = [TABLE, TOPIC, OTHER, LOST]
    assets = Definitions(assets=[AssetSpec(suite_asset_key(suite)) for suite in suites])
    return Definitions.merge(assets, build_expectation_definitions(suites, checking))


def test_every_expectation_is_a_check_with_counts_examples_and_rows(instance) -> None:
    defs = definitions(
        {"latest/minutes": [build_result(NOON, PASSED, FAILED), build_result(NOON + 1, PASSED)]}, []
    )
    done = defs.resolve_job_def(CHECK_TABLES_JOB).execute_in_process(instance=instance)
    found = {(one.asset_key.path[-1], one.check_name): one for one in done.get_asset_check_evaluations()}
    assert {key: one.passed for key, one in found.items()} == {
        ("minutes", "n_between"): True,
        ("minutes", "n_set"): False,
        ("silent", "z"): True,
        ("sensors", "warm"): True,
        ("sensors", "known"): False,
        ("damaged", "lost"): False,
    }
    missed = found["minutes", "n_set"].metadata
    assert (missed["unexpected_rows"].value, missed["checked_rows"].value) == (2, 5)
    assert missed["examples"].data == [{"n": 7, "device": "<b>"}]
    assert missed["rows"].path == "/rows.jsonl"
    assert missed["page"].path == "/docs/index.html#latest/minutes-n_set"
    assert found["sensors", "warm"].metadata["page"].path == "/docs/index.html#topics/sensors-warm"
    assert found["silent", "z"].metadata["state"].text == "no window is final yet"
    assert found["sensors", "known"].severity is AssetCheckSeverity.ERROR
    assert found["sensors", "known"].metadata["records_of_a_day"].value == 3
    assert found["sensors", "known"].metadata["examples"].data == ["sensors: known"]
    assert found["sensors", "known"].metadata["command"].text == "penstock table show STREAM --kind checks"
    assert found["sensors", "warm"].metadata["examples"].data == []


def test_what_a_check_names_can_be_followed_where_a_browser_finds_it(instance) -> None:
    rows = Path("/home/quality/latest-minutes/final-1/n_set.jsonl")
    missed = dataclasses.replace(FAILED, rows=str(rows))
    found = told(
        definitions(
            {"latest/minutes": [build_result(NOON, missed)]},
            [],
            page=Path("/home/quality/docs/index.html"),
            served="http://127.0.0.1:9464/quality/",
        ),
        instance,
    )
    shown = found["n_set"].metadata
    assert shown["page"].url == "http://127.0.0.1:9464/quality/docs/index.html#latest/minutes-n_set"
    assert shown["rows"].url == "http://127.0.0.1:9464/quality/latest-minutes/final-1/n_set.jsonl"
    assert shown["rows_file"].path == str(rows)
    assert found["warm"].metadata["page"].url.endswith("#topics/sensors-warm")


def test_a_suite_that_the_library_refuses_fails_its_own_checks_only(instance) -> None:
    refused = SuiteError(
        "minutes.yaml", "n_set", "unknown expectation expect_luck", "See the library's own list"
    )
    done = (
        definitions({"latest/minutes": refused}, [])
        .resolve_job_def(CHECK_TABLES_JOB)
        .execute_in_process(instance=instance)
    )
    found = {one.check_name: one for one in done.get_asset_check_evaluations()}
    assert [name for name, one in found.items() if not one.passed] == ["n_between", "n_set", "lost", "known"]
    assert found["n_set"].metadata["problem"].text == str(refused)


def test_a_table_that_cannot_be_read_fails_its_own_checks_only(instance) -> None:
    kept: dict[str, TableCheckOutcome] = {
        "latest/minutes": [build_result(NOON, PASSED)],
        "latest/silent": ArrowInvalid("a file is not what it was"),
    }
    found = told(definitions(kept, []), instance)
    assert {name: one.passed for name, one in found.items()} == {
        "n_between": True, "n_set": True, "z": False, "warm": True, "known": False, "lost": False,
    }  # fmt: skip
    for name in ("z", "lost"):
        assert found[name].description == "could not run: a file is not what it was"


def told(defs: Definitions, instance) -> dict[str, AssetCheckEvaluation]:
    done = defs.resolve_job_def(CHECK_TABLES_JOB).execute_in_process(instance=instance)
    assert done.success
    return {one.check_name: one for one in done.get_asset_check_evaluations()}


def checked_at(at_ms: int, *met: ExpectationResult) -> BatchCheckResult:
    return dataclasses.replace(build_result(at_ms, *met), at_ms=at_ms)


def test_what_came_of_a_batch_is_told_once_by_whoever_comes_first(instance) -> None:
    """Batches that somebody else had checked, or whose run was lost, are told by the next run."""
    kept: dict[str, TableCheckOutcome] = {
        "latest/minutes": [checked_at(NOON, PASSED, FAILED), checked_at(NOON + 1, PASSED, WELL)]
    }
    first = told(definitions(kept, []), instance)
    assert (first["n_set"].passed, first["n_set"].metadata["batches"].value) == (False, 2)
    again = told(definitions(kept, []), instance)
    assert again["n_set"].passed
    assert "batches" not in again["n_set"].metadata
    trouble: dict[str, TableCheckOutcome] = {"latest/minutes": ArrowInvalid("away for a moment")}
    assert not told(definitions(trouble, []), instance)["n_set"].passed
    outcomes = kept["latest/minutes"]
    assert isinstance(outcomes, list)
    outcomes += [checked_at(NOON + 2, FAILED), checked_at(NOON + 3, WELL)]
    after = told(definitions(kept, []), instance)
    assert (after["n_set"].passed, after["n_set"].metadata["batches_failed"].value) == (False, 1)


def test_tables_are_checked_when_windows_became_final_and_once_an_hour_at_most() -> None:
    def evaluate(due: list[tuple[str, int]], cursor: str | None, now_ms: int) -> RunRequest | SkipReason:
        (sensor,) = definitions({}, due, now_ms).sensors or []
        return sensor._raw_fn(build_sensor_context(cursor=cursor))

    hour = str(NOON // 3_600_000)
    assert isinstance(evaluate([], None, NOON), SkipReason)
    assert evaluate([("latest/minutes", 5)], None, NOON).run_key == f"{CHECK_TABLES_JOB}-{hour}"
    assert isinstance(evaluate([("latest/minutes", 5)], hour, NOON), SkipReason)
    assert isinstance(evaluate([("latest/minutes", 5)], hour, NOON + 3_600_000), RunRequest)
