"""The upgrade class of each change of a definition."""

from dataclasses import replace

import pytest
from tests.pipelines.stream.named_functions import Alarm, alarm

from penstock.engine.plan.codec import plan_from_dict, plan_to_dict
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan
from penstock.engine.upgrade.plan_comparison import compare_plans
from penstock.engine.upgrade.upgrade_class import PlanDifference, UpgradeClass
from penstock.stream import after_watermark, count, every, fixed, max_, mean, min_, read, sliding
from penstock.stream.pipeline import Pipeline


def build_pipeline(
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


def build_plan(**changes) -> Plan:
    return build_pipeline(**changes).to_plan("minute")


def with_source(before: Plan, **changes: object) -> Plan:
    return replace(before, sources=(replace(before.sources[0], **changes),))


AGGREGATES = {"warmest": max_("temperature"), "readings": count()}


@pytest.mark.parametrize(
    ("after", "upgrade_class", "subjects"),
    [
        (build_plan(), UpgradeClass.SAME, []),
        (build_plan(lateness="59 minutes"), UpgradeClass.COMPATIBLE, ["lateness"]),
        (build_plan(lateness="61 minutes"), UpgradeClass.REPLAY, ["lateness"]),
        (build_pipeline().sql("SELECT * FROM input").to_plan("minute"), UpgradeClass.COMPATIBLE, ["steps"]),
        (build_pipeline().write("minute", mode="log").to_plan("minute"), UpgradeClass.COMPATIBLE, ["write"]),
        (build_pipeline().write("other", mode="latest").to_plan("minute"), UpgradeClass.REPLAY, ["write"]),
        (build_plan(readings=count()), UpgradeClass.MIGRATABLE, ["warmest"]),
        (build_plan(**AGGREGATES, coldest=min_("temperature")), UpgradeClass.REPLAY, ["coldest"]),
        (build_plan(warmest=mean("temperature"), readings=count()), UpgradeClass.REPLAY, ["warmest"]),
        (
            build_plan(readings=count(), warmest=max_("temperature")),
            UpgradeClass.MIGRATABLE,
            ["order of columns"],
        ),
        (build_plan(window=fixed("2 minutes")), UpgradeClass.REPLAY, ["window"]),
        (build_plan(window=sliding("1 minute", "30 seconds")), UpgradeClass.REPLAY, ["window"]),
        (build_plan(key="site"), UpgradeClass.REPLAY, ["key"]),
        (build_plan(how="accumulating"), UpgradeClass.REPLAY, ["accumulation"]),
        (build_plan(trigger=after_watermark(early=every("5 seconds"))), UpgradeClass.REPLAY, ["trigger"]),
    ],
)
def test_a_change_has_its_upgrade_class(
    after: Plan, upgrade_class: UpgradeClass, subjects: list[str]
) -> None:
    comparison = compare_plans(build_plan(), after)
    assert comparison.upgrade_class is upgrade_class
    assert [difference.subject for difference in comparison.differences] == subjects


def test_a_column_may_start_empty_if_the_user_accepts_it() -> None:
    changed = build_plan(warmest=mean("temperature"), readings=count(), coldest=min_("temperature"))
    assert compare_plans(build_plan(), changed, ["coldest"]).upgrade_class is UpgradeClass.REPLAY
    assert (
        compare_plans(build_plan(), changed, ["coldest", "warmest"]).upgrade_class is UpgradeClass.MIGRATABLE
    )


def test_a_change_of_an_input_is_classified() -> None:
    before = build_plan()
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


def test_a_changed_format_of_a_timestamp_is_named_with_what_it_does_to_unread_records() -> None:
    """`plan-upgrade` showed `BIGINT, required` on both sides, and that nothing happens."""
    iso = Column("at", "BIGINT", True, "timestamp(iso8601)", declared_type="timestamp(iso8601)")
    stored_iso = replace(iso, declared_type=None)
    millis = Column("at", "BIGINT", True, declared_type="timestamp")
    plan = build_plan()

    def with_time(column: Column) -> Plan:
        source = plan.sources[0]
        others = tuple(other for other in source.columns if other.name != "at")
        return replace(plan, sources=(replace(source, columns=(*others, column)),))

    assert compare_plans(with_time(stored_iso), with_time(millis)).differences == (
        PlanDifference(
            "sensors.at",
            "timestamp(iso8601), required",
            "timestamp, required",
            UpgradeClass.COMPATIBLE,
            "records of the former format that are still unread are quarantined: upgrade when the lag is 0",
        ),
    )
    (back,) = compare_plans(with_time(replace(millis, declared_type=None)), with_time(iso)).differences
    assert (back.before, back.after) == ("BIGINT, required", "timestamp(iso8601), required")


def test_another_encoding_of_a_topic_names_what_happens_to_its_records() -> None:
    plan = build_plan()
    source = replace(plan.sources[0], origin=TopicOrigin("sensors", "avro"))
    (difference,) = compare_plans(plan, replace(plan, sources=(source,))).differences
    assert (difference.before, difference.after, difference.upgrade_class) == (
        "json",
        "avro",
        UpgradeClass.REPLAY,
    )
    assert difference.subject == "sensors.encoding"
    assert difference.note.endswith("declare a new topic for the other encoding")


def test_a_difference_shows_both_values() -> None:
    (difference,) = compare_plans(build_plan(), build_plan(lateness="2 hours")).differences
    assert (difference.before, difference.after) == ("1 hour", "2 hours")
    (removed,) = compare_plans(build_plan(), build_plan(readings=count())).differences
    assert (removed.before, removed.after) == ("max(temperature)", "absent")


def test_a_stored_plan_is_the_same() -> None:
    assert (
        compare_plans(plan_from_dict(plan_to_dict(build_plan())), build_plan()).upgrade_class
        is UpgradeClass.SAME
    )


def test_a_function_may_start_to_set_processing_time_timers() -> None:
    def build_stateful_plan(**declared: bool) -> Plan:
        keyed = read("sensors").key("device")
        keyed = keyed.stateful(alarm, state=Alarm, returns={"above": "DOUBLE"}, **declared)
        return keyed.write("alarms", mode="log").plan

    comparison = compare_plans(
        plan_from_dict(plan_to_dict(build_stateful_plan())), build_stateful_plan(clock=True)
    )
    assert [(each.subject, each.upgrade_class) for each in comparison.differences] == [
        ("stateful.clock", UpgradeClass.COMPATIBLE)
    ]
    assert (
        compare_plans(build_stateful_plan(), build_stateful_plan(vectorized=True)).upgrade_class
        is UpgradeClass.REPLAY
    )


def test_a_changed_trigger_is_shown_as_it_is_written() -> None:
    (difference,) = compare_plans(
        build_plan(), build_plan(trigger=after_watermark(early=every("5 seconds")))
    ).differences
    assert difference.before == "after_watermark(early=every(10 seconds))"
    assert difference.after == "after_watermark(early=every(5 seconds))"
