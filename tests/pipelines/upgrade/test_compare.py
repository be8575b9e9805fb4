"""What a change of a definition takes, case by case; and that every answer of a plan has been thought of."""

from dataclasses import replace

import pytest
from tests.pipelines.model.forms import Alarm, alarm

from penstock.pipelines.model import (
    after_watermark,
    count,
    every,
    fixed,
    max_,
    mean,
    min_,
    read,
    sliding,
)
from penstock.pipelines.model.pipeline import Pipeline
from penstock.pipelines.plan import Column, Plan, Source, Topic, WatermarkRule
from penstock.pipelines.plan.codec import from_dict, to_dict
from penstock.pipelines.upgrade.classes import Class
from penstock.pipelines.upgrade.compare import compare


def pipeline(
    window=None, key="device", how="retracting", trigger=None, lateness="1 hour", **aggregates
) -> Pipeline:
    return (
        read("sensors")
        .key(key)
        .aggregate(**(aggregates or {"warmest": max_("temperature"), "readings": count()}))
        .window(window or fixed("1 minute"))
        .trigger(trigger or after_watermark(early=every("10 seconds")), lateness=lateness)
        .refine(how)
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
        (plan(), Class.SAME, []),
        (plan(lateness="59 minutes"), Class.COMPATIBLE, ["lateness"]),
        (plan(lateness="61 minutes"), Class.REPLAY, ["lateness"]),
        (pipeline().sql("SELECT * FROM input").to_plan("minute"), Class.COMPATIBLE, ["steps"]),
        (pipeline().write("minute", mode="log").to_plan("minute"), Class.COMPATIBLE, ["write"]),
        (pipeline().write("other", mode="latest").to_plan("minute"), Class.REPLAY, ["write"]),
        (plan(readings=count()), Class.MIGRATABLE, ["warmest"]),
        (plan(**BOTH, coldest=min_("temperature")), Class.REPLAY, ["coldest"]),
        (plan(warmest=mean("temperature"), readings=count()), Class.REPLAY, ["warmest"]),
        (plan(readings=count(), warmest=max_("temperature")), Class.MIGRATABLE, ["order of columns"]),
        (plan(window=fixed("2 minutes")), Class.REPLAY, ["window"]),
        (plan(window=sliding("1 minute", "30 seconds")), Class.REPLAY, ["window"]),
        (plan(key="site"), Class.REPLAY, ["key"]),
        (plan(how="accumulating"), Class.REPLAY, ["accumulation"]),
        (plan(trigger=after_watermark(early=every("5 seconds"))), Class.REPLAY, ["trigger"]),
    ],
)
def test_what_a_change_takes(after: Plan, takes: Class, what: list[str]) -> None:
    found = compare(plan(), after)
    assert found.takes is takes
    assert [difference.what for difference in found.differences] == what


def test_a_column_may_be_declared_to_count_from_now_on() -> None:
    changed = plan(warmest=mean("temperature"), readings=count(), coldest=min_("temperature"))
    assert compare(plan(), changed, ["coldest"]).takes is Class.REPLAY
    assert compare(plan(), changed, ["coldest", "warmest"]).takes is Class.MIGRATABLE


def test_what_an_input_says_otherwise() -> None:
    before = plan()
    (source,) = before.sources
    slower = replace(source.watermark, bound=source.watermark.bound + 1)
    wider = (*source.columns, Column("more", "STRING"))
    retyped = tuple(replace(c, type="STRING") if c.name == "temperature" else c for c in source.columns)
    assert compare(before, with_source(before, watermark=slower)).takes is Class.COMPATIBLE
    assert compare(before, with_source(before, columns=wider)).takes is Class.COMPATIBLE
    assert compare(before, with_source(before, columns=retyped)).takes is Class.REPLAY
    assert compare(before, with_source(before, origin=Topic("others"))).takes is Class.REPLAY
    other = Source("others", Topic("others"), source.columns, source.event_time, WatermarkRule())
    assert compare(before, replace(before, sources=(source, other))).takes is Class.REPLAY


def test_a_difference_says_what_was_and_what_is() -> None:
    (difference,) = compare(plan(), plan(lateness="2 hours")).differences
    assert (difference.before, difference.after) == ("3600000", "7200000")
    (gone,) = compare(plan(), plan(readings=count())).differences
    assert (gone.before, gone.after) == ("Max(field=temperature)", "not there")


def test_a_plan_that_was_stored_and_read_back_is_the_same() -> None:
    assert compare(from_dict(to_dict(plan())), plan()).takes is Class.SAME


def test_that_a_function_sets_timers_of_the_clock_can_be_said_afterwards() -> None:
    def remembering(**declared: bool) -> Plan:
        told = read("sensors").key("device")
        told = told.remember(alarm, state=Alarm, returns={"above": "DOUBLE"}, **declared)
        return told.write("alarms", mode="log").plan

    found = compare(from_dict(to_dict(remembering())), remembering(clock=True))
    assert [(each.what, each.takes) for each in found.differences] == [("remember.clock", Class.COMPATIBLE)]
    assert compare(remembering(), remembering(vectorised=True)).takes is Class.REPLAY
