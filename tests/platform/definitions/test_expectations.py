"""What Dagster is told of expectations: a check each, with counts, examples, and the rows."""

from collections.abc import Sequence

from dagster import AssetCheckSeverity, AssetSpec, Definitions, RunRequest, SkipReason, build_sensor_context
from tests.quality.expectations.test_at_rest import MET, MISSED, NOON, outcome

from penstock.platform.definitions.expectations import JOB, Checking, asset_of, expectation_definitions
from penstock.platform.expectations import Checked
from penstock.quality.errors import SuiteError
from penstock.quality.expectations.suite import Expectation, Suite

TABLE = Suite(
    "latest/minutes", tuple(Expectation(one.type, {"column": "n"}, one.name) for one in (MET, MISSED))
)
TOPIC = Suite(
    "topics/sensors",
    (Expectation("expect_x", {}, "warm", "warn"), Expectation("expect_y", {}, "known", "stop")),
)
OTHER = Suite("latest/silent", (Expectation("expect_z", {}, "z"),))


def definitions(checked: dict[str, Checked], due: list[tuple[str, int]], now_ms: int = NOON) -> Definitions:
    def check(wanted: Sequence[str]) -> dict[str, Checked]:
        return {about: checked.get(about, []) for about in wanted}

    checking = Checking(check, lambda _: None, lambda: iter(due), lambda _: {"known": 3}, lambda: now_ms)
    suites = [TABLE, TOPIC, OTHER]
    assets = Definitions(assets=[AssetSpec(asset_of(suite)) for suite in suites])
    return Definitions.merge(assets, expectation_definitions(suites, checking))


def test_every_expectation_is_a_check_with_counts_examples_and_rows(instance) -> None:
    defs = definitions({"latest/minutes": [outcome(NOON, MET, MISSED), outcome(NOON + 1, MET)]}, [])
    done = defs.resolve_job_def(JOB).execute_in_process(instance=instance)
    found = {(one.asset_key.path[-1], one.check_name): one for one in done.get_asset_check_evaluations()}
    assert {key: one.passed for key, one in found.items()} == {
        ("minutes", "n_between"): True,
        ("minutes", "n_set"): False,
        ("silent", "z"): True,
        ("sensors", "warm"): True,
        ("sensors", "known"): False,
    }
    missed = found["minutes", "n_set"].metadata
    assert (missed["unexpected_rows"].value, missed["checked_rows"].value) == (2, 5)
    assert missed["examples"].data == [{"n": 7, "device": "<b>"}]
    assert missed["rows"].path == "/rows.jsonl"
    assert found["silent", "z"].metadata["state"].text == "no window is final yet"
    assert found["sensors", "known"].severity is AssetCheckSeverity.ERROR
    assert found["sensors", "known"].metadata["records_of_a_day"].value == 3


def test_a_suite_that_the_library_refuses_fails_its_own_checks_only(instance) -> None:
    refused = SuiteError("minutes.yaml", "n_set", "there is no expect_luck", "See the library's own list")
    done = (
        definitions({"latest/minutes": refused}, [])
        .resolve_job_def(JOB)
        .execute_in_process(instance=instance)
    )
    found = {one.check_name: one for one in done.get_asset_check_evaluations()}
    assert [name for name, one in found.items() if not one.passed] == ["n_between", "n_set", "known"]
    assert found["n_set"].metadata["problem"].text == str(refused)


def test_tables_are_checked_when_windows_became_final_and_once_an_hour_at_most() -> None:
    def evaluate(due: list[tuple[str, int]], cursor: str | None, now_ms: int) -> RunRequest | SkipReason:
        (sensor,) = definitions({}, due, now_ms).sensors or []
        return sensor._raw_fn(build_sensor_context(cursor=cursor))

    hour = str(NOON // 3_600_000)
    assert isinstance(evaluate([], None, NOON), SkipReason)
    assert evaluate([("latest/minutes", 5)], None, NOON).run_key == f"{JOB}-{hour}"
    assert isinstance(evaluate([("latest/minutes", 5)], hour, NOON), SkipReason)
    assert isinstance(evaluate([("latest/minutes", 5)], hour, NOON + 3_600_000), RunRequest)
