"""What a change of a definition takes, case by case; and that every answer of a plan has been thought of."""

from dataclasses import replace

import pytest
from tests.pipelines.stream.named_functions import Alarm, alarm

from penstock.engine.plan import Column, Plan, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.codec import plan_from_dict, plan_to_dict
from penstock.engine.upgrade.plan_comparison import compare_plans
from penstock.engine.upgrade.upgrade_class import UpgradeClass
from penstock.stream import after_watermark, count, every, fixed, max_, mean, min_, read, sliding
from penstock.stream.pipeline import Pipeline


def pipeline(
    window=None, key="device", how="retracting", trigger=None, lateness="1 hour", **aggregates
) -> Pipeline:
    return (
        read("sensors")
        .key(key)
        .aggregate(**(aggregates or {"warmest": max_("temperature"), "readings": count()}))
        .window(window or fixed("1 minute"))
        .trigger(trigger or after_watermark(early=every("10 seconds")), lateness=lateness)
        .accumulation(how)
        .write("minute", mode="latest")
    )


def plan(**changes) -> Plan:
    return pipeline(**changes).to_plan("minute")


def with_source(before: Plan, **changes: object) -> Plan:
    return replace(before, sources=(replace(before.sources[0], **changes),))


BOTH = {"warmest": max_("temperature"), "readings": count()}


@pytest.mark.parametrize(
    ("after", "takes", "what"),
    [
        (plan(), UpgradeClass.SAME, []),
        (plan(lateness="59 minutes"), UpgradeClass.COMPATIBLE, ["lateness"]),
        (plan(lateness="61 minutes"), UpgradeClass.REPLAY, ["lateness"]),
        (pipeline().sql("SELECT * FROM input").to_plan("minute"), UpgradeClass.COMPATIBLE, ["steps"]),
        (pipeline().write("minute", mode="log").to_plan("minute"), UpgradeClass.COMPATIBLE, ["write"]),
        (pipeline().write("other", mode="latest").to_plan("minute"), UpgradeClass.REPLAY, ["write"]),
        (plan(readings=count()), UpgradeClass.MIGRATABLE, ["warmest"]),
        (plan(**BOTH, coldest=min_("temperature")), UpgradeClass.REPLAY, ["coldest"]),
        (plan(warmest=mean("temperature"), readings=count()), UpgradeClass.REPLAY, ["warmest"]),
        (plan(readings=count(), warmest=max_("temperature")), UpgradeClass.MIGRATABLE, ["order of columns"]),
        (plan(window=fixed("2 minutes")), UpgradeClass.REPLAY, ["window"]),
        (plan(window=sliding("1 minute", "30 seconds")), UpgradeClass.REPLAY, ["window"]),
        (plan(key="site"), UpgradeClass.REPLAY, ["key"]),
        (plan(how="accumulating"), UpgradeClass.REPLAY, ["accumulation"]),
        (plan(trigger=after_watermark(early=every("5 seconds"))), UpgradeClass.REPLAY, ["trigger"]),
    ],
)
def test_a_change_requires_its_upgrade_class(after: Plan, takes: UpgradeClass, what: list[str]) -> None:
    found = compare_plans(plan(), after)
    assert found.upgrade_class is takes
    assert [difference.subject for difference in found.differences] == what


def test_a_column_may_be_declared_to_count_from_now_on() -> None:
    changed = plan(warmest=mean("temperature"), readings=count(), coldest=min_("temperature"))
    assert compare_plans(plan(), changed, ["coldest"]).upgrade_class is UpgradeClass.REPLAY
    assert compare_plans(plan(), changed, ["coldest", "warmest"]).upgrade_class is UpgradeClass.MIGRATABLE


def test_a_change_of_an_input_is_classified() -> None:
    before = plan()
    (source,) = before.sources
    slower = replace(source.watermark, max_out_of_orderness=source.watermark.max_out_of_orderness + 1)
    wider = (*source.columns, Column("more", "STRING"))
    retyped = tuple(replace(c, type="STRING") if c.name == "temperature" else c for c in source.columns)
    assert (
        compare_plans(before, with_source(before, watermark=slower)).upgrade_class is UpgradeClass.COMPATIBLE
    )
    assert compare_plans(before, with_source(before, columns=wider)).upgrade_class is UpgradeClass.COMPATIBLE
    assert compare_plans(before, with_source(before, columns=retyped)).upgrade_class is UpgradeClass.REPLAY
    assert (
        compare_plans(before, with_source(before, origin=TopicOrigin("others"))).upgrade_class
        is UpgradeClass.REPLAY
    )
    other = PlanSource(
        "others", TopicOrigin("others"), source.columns, source.event_time, WatermarkStrategy()
    )
    assert (
        compare_plans(before, replace(before, sources=(source, other))).upgrade_class is UpgradeClass.REPLAY
    )


def test_a_difference_shows_both_values() -> None:
    (difference,) = compare_plans(plan(), plan(lateness="2 hours")).differences
    assert (difference.before, difference.after) == ("3600000", "7200000")
    (gone,) = compare_plans(plan(), plan(readings=count())).differences
    assert (gone.before, gone.after) == ("Max(field=temperature)", "absent")


def test_a_plan_that_was_stored_and_read_back_is_the_same() -> None:
    assert compare_plans(plan_from_dict(plan_to_dict(plan())), plan()).upgrade_class is UpgradeClass.SAME


def test_a_function_may_start_to_set_processing_time_timers() -> None:
    def remembering(**declared: bool) -> Plan:
        told = read("sensors").key("device")
        told = told.stateful(alarm, state=Alarm, returns={"above": "DOUBLE"}, **declared)
        return told.write("alarms", mode="log").plan

    found = compare_plans(plan_from_dict(plan_to_dict(remembering())), remembering(clock=True))
    assert [(each.subject, each.upgrade_class) for each in found.differences] == [
        ("stateful.clock", UpgradeClass.COMPATIBLE)
    ]
    assert compare_plans(remembering(), remembering(vectorized=True)).upgrade_class is UpgradeClass.REPLAY
