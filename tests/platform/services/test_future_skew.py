"""The limit on future event times: the pipeline's, else the contract's, else that of the settings."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, run_batches

from penstock.engine.explain import explain
from penstock.engine.plan.sources import WatermarkStrategy
from penstock.engine.plan.stages import Plan
from penstock.engine.upgrade.kept_future_skew import accept_skew, keep_stored_skew
from penstock.engine.upgrade.plan_comparison import compare_plans
from penstock.engine.upgrade.stored_plan import assess_upgrade, store_plan
from penstock.engine.upgrade.upgrade_class import UpgradeClass
from penstock.ingestion.contracts import FutureSkewLimit, load_contract
from penstock.platform.services.future_skew import apply_skew_setting
from penstock.platform.services.stream_catalog import load_plan
from penstock.stream import count, fixed, read, read_panes

HOUR_MS, TEN_MINUTES_MS = 3_600_000, 600_000


def build_plan(contract_limit: FutureSkewLimit | None, **options: str) -> Plan:
    contract = replace(load_contract("sensors"), max_future_skew=contract_limit)
    pipeline = (
        read(contract, **options).key("device").aggregate(n=count()).window(fixed("1 minute")).write("t")
    )
    return pipeline.to_plan("t")


@pytest.mark.parametrize(
    ("contract_limit", "options", "setting", "expected"),
    [
        (None, {}, TEN_MINUTES_MS, (TEN_MINUTES_MS, "setting")),
        (None, {}, "unlimited", (None, "setting")),
        (HOUR_MS, {}, TEN_MINUTES_MS, (HOUR_MS, "contract")),
        ("unlimited", {}, TEN_MINUTES_MS, (None, "contract")),
        (HOUR_MS, {"max_future_skew": "2 hours"}, TEN_MINUTES_MS, (2 * HOUR_MS, "read")),
        (HOUR_MS, {"max_future_skew": "unlimited"}, TEN_MINUTES_MS, (None, "read")),
        (None, {"files": "raw/sensors"}, TEN_MINUTES_MS, (None, "unset")),
    ],
)
def test_the_pipeline_goes_before_the_contract_and_the_contract_before_the_setting(
    contract_limit: FutureSkewLimit | None,
    options: dict[str, str],
    setting: FutureSkewLimit,
    expected: tuple[int | None, str],
) -> None:
    rule = apply_skew_setting(build_plan(contract_limit, **options), setting).sources[0].watermark
    assert (rule.max_future_skew, rule.skew_origin) == expected


def test_the_limit_of_the_setting_is_a_plain_number_in_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_MAX_FUTURE_SKEW", "10m")
    (source,) = load_plan("sensor_minute").sources
    assert f"{source.watermark.max_future_skew}L" == "600000L"


def test_panes_of_another_stream_have_no_limit() -> None:
    panes = read_panes("changes", columns={"n": "BIGINT"})
    plan = panes.aggregate(n=count()).window(fixed("1 minute")).write("t").to_plan("t")
    assert apply_skew_setting(plan, TEN_MINUTES_MS) == plan


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            "",
            "records more than 10 minutes ahead of the clock are quarantined (max_future_skew of the settings)",
        ),
        ("unlimited", "any future event time is accepted (max_future_skew of the settings)"),
    ],
)
def test_explain_says_the_limit_and_where_it_comes_from(
    setting: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_MAX_FUTURE_SKEW", setting)
    assert sentence in explain(load_plan("sensor_minute")).as_text()


def test_a_stream_that_runs_without_a_limit_keeps_none_until_it_is_upgraded(tmp_path: Path) -> None:
    """A stream of 0.1.0: the state in this folder follows a plan that no limit was known for."""
    stored = PLANS["fixed"]
    bench = Bench(stored, tmp_path)
    run_batches(bench)
    directory = tmp_path / "stream"
    assert keep_stored_skew(tmp_path / "new", limit_by_setting(stored)) == limit_by_setting(stored)
    store_plan(directory, stored)
    assert keep_stored_skew(directory, limit_by_setting(stored)) == stored
    declared = limit_by_setting(stored, "contract")
    assert keep_stored_skew(directory, declared) == declared

    (difference,) = compare_plans(stored, limit_by_setting(stored)).differences
    assert (difference.subject, difference.before, difference.after) == (
        "records.max_future_skew",
        "unlimited",
        "10m",
    )
    assert difference.upgrade_class is UpgradeClass.COMPATIBLE
    upgrade = assess_upgrade(directory, stored)
    assert upgrade is not None
    assert upgrade.upgrade_class <= UpgradeClass.COMPATIBLE
    accept_skew(directory)
    assert keep_stored_skew(directory, limit_by_setting(stored)) == limit_by_setting(stored)


def limit_by_setting(plan: Plan, origin: str = "setting") -> Plan:
    (source,) = plan.sources
    rule = WatermarkStrategy(
        **{**vars(source.watermark), "max_future_skew": TEN_MINUTES_MS, "skew_origin": origin}
    )
    return replace(plan, sources=(replace(source, watermark=rule),))
