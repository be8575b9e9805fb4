"""Stages that cannot follow each other, and functions that cannot stand where they do, are refused by name."""

from typing import Any

import pytest
from tests.pipelines.stream.named_functions import Alarm, add_degrees, alarm

from penstock.engine.errors import DefinitionError
from penstock.stream import (
    Pipeline,
    after_count,
    after_punctuation,
    as_of,
    between,
    collect,
    count,
    fixed,
    global_window,
    join,
    max_,
    quantiles,
    read,
    read_panes,
    records,
    repeatedly,
    same_windows,
    sessions,
    sum_,
    tumbling,
    union,
)

BASE = read("sensors").key("device").aggregate(hottest=max_("temperature")).window(fixed("1 minute"))
TAKEN_BACK = BASE.trigger(lateness="1 hour").accumulation("retracting").write("minute")
AGAIN = BASE.trigger(repeatedly(after_count(1))).write("minute")
BY_CLOCK = read("sensors").aggregate(n=count()).window(fixed("1 minute", time="processing")).write("minute")
OTHER = BASE.accumulation("retracting").write("other")
HOURS = read("sensors").key("device").aggregate(n=count()).window(fixed("1 hour")).write("other")
EVER = read("sensors").aggregate(n=count()).window(global_window()).accumulation("retracting").write("minute")
NEAR = (
    join(read("clicks"), read("cards"), by="id", how="left", take={"clicked": "clicks.id"})
    .window(between("0 s", "1 minute"))
    .write("minute", mode="log")
)


def after(first: Pipeline) -> Pipeline:
    """A stage over another one."""
    return first.then().aggregate(n=count())


WRONG: dict[str, tuple[Pipeline, str]] = {
    "panes that stand for others": (after(AGAIN).write("t"), "emits a window again without retracting"),
    "a result that cannot go": (
        after(TAKEN_BACK).accumulation("accumulating").write("t"),
        "over panes that are retracted",
    ),
    "less lateness": (
        after(TAKEN_BACK).trigger(lateness="1 minute").write("t"),
        "Set at least 3600000 ms",
    ),
    "order windows": (
        after(TAKEN_BACK).window(tumbling(records(2))).write("t"),
        "an order window over panes",
    ),
    "sessions": (after(TAKEN_BACK).window(sessions("1 minute")).write("t"), "a session does not shrink"),
    "the clock": (
        after(TAKEN_BACK).window(fixed("1 hour", time="processing")).write("t"),
        "processing-time windows over panes",
    ),
    "rows that waited longer": (
        NEAR.then().aggregate(n=count()).window(fixed("1 hour")).trigger(lateness="59 seconds").write("t"),
        "Set at least 60000 ms, because",
    ),
    "after the clock": (after(BY_CLOCK).window(fixed("1 hour")).write("t"), "may end behind the watermark"),
    "a join of one with itself": (
        join(read("clicks"), read("clicks"), by="user").window(fixed("1 hour")).write("t", mode="log"),
        "clicks is read twice in one stage",
    ),
    "a join of a stage with itself": (
        join(TAKEN_BACK, TAKEN_BACK, by="device").write("t", mode="log"),
        "join: minute is read twice in one stage. Join two stages that read it",
    ),
    "a join of a stage and a topic": (
        join(TAKEN_BACK, read("sensors"), by="device").write("t", mode="log"),
        "both topics and stages",
    ),
    "an input with a name of a stage": (
        join(read("clicks").named("seen"), read("cards"), by="id")
        .window(fixed("1 hour"))
        .write("t", mode="log"),
        "window: missing",
    ),
    "repeats among panes": (
        TAKEN_BACK.then().deduplicate("device").aggregate(n=count()).write("t"),
        "deduplicate: set for panes",
    ),
    "a column that one side of a join does not show": (
        join(TAKEN_BACK, HOURS.accumulation("retracting"), by="device", take={"n": "minute.n"})
        .window(fixed("1 hour"))
        .write("t", mode="log"),
        "the input of wrong has no column 'n'. minute has: device, hottest, window_end, window_start",
    ),
    "a name that two stages have": (
        after(TAKEN_BACK).named("minute").write("t"),
        "name: 'minute' is used twice",
    ),
    "a join into newest values": (
        join(read("clicks"), read("cards"), by="id").window(fixed("1 hour")).write("t"),
        "a window may have many joined rows",
    ),
    "two stages into one table": (
        TAKEN_BACK.also(read("cards").aggregate(n=count()).window(fixed("1 hour")).write("minute")),
        "table minute is written by both wrong and minute",
    ),
    "two stages into one topic": (
        TAKEN_BACK.publish("panes").also(OTHER.publish("panes")),
        "topic panes is written by both wrong and other",
    ),
    "a join in parts": (
        join(read("clicks"), read("cards"), by="id")
        .window(fixed("1 hour"))
        .accumulation("discarding")
        .write("t", mode="log"),
        "a pair whose sides arrive in different panes would be lost",
    ),
    "a join of other windows": (
        join(TAKEN_BACK, HOURS, by="device").write("t", mode="log"),
        "minute and other have different windows, so their rows can never match",
    ),
    "a join in order": (
        join(read("clicks"), read("cards"), by="id").window(tumbling(records(2))).write("t", mode="log"),
        "an order window for a join",
    ),
    "partners without a join": (
        read("clicks").aggregate(n=count()).window(between("0 s", "1 minute")).write("t"),
        "Start with join",
    ),
    "partners with a trigger": (
        join(read("clicks"), read("cards"), by="id")
        .window(as_of())
        .trigger(repeatedly(after_count(1)))
        .write("t", mode="log"),
        "a row is emitted once, when it is final",
    ),
    "versions that nobody asked for": (
        join(read("clicks"), read("cards"), by="id", how="full").window(as_of()).write("t", mode="log"),
        "Write inner, left, semi or anti",
    ),
    "near panes": (
        join(TAKEN_BACK, BASE.accumulation("retracting").write("other"), by="device")
        .window(between("0 s", "1 minute"))
        .write("t", mode="log"),
        "Join panes in their own windows",
    ),
    "a column of neither": (
        join(read("clicks"), read("cards"), by="id", take=["colour"])
        .window(fixed("1 hour"))
        .write("t", mode="log"),
        "0 inputs have 'colour'",
    ),
    "a column of both": (
        join(read("clicks"), read("cards"), by="id", take=["at"])
        .window(fixed("1 hour"))
        .write("t", mode="log"),
        "Name the input, as in 'clicks.at'",
    ),
    "a column of the other": (
        join(read("clicks"), read("cards"), by="id", how="semi", take={"paid": "cards.amount"})
        .window(fixed("1 hour"))
        .write("t", mode="log"),
        "a semi join returns only its elements",
    ),
    "a key of one input": (
        join(read("clicks"), read("cards"), by="user").window(fixed("1 hour")).write("t", mode="log"),
        "cards has no field 'user'",
    ),
    "a key of two types": (
        join(read("nexmark-bids"), read("nexmark-auctions"), by="id")
        .window(fixed("1 hour"))
        .write("t", mode="log"),
        "Rename it in a step before, as in read('nexmark-auctions').select(other_id='id', ...)",
    ),
    "aggregates in a join": (
        join(read("clicks"), read("cards"), by="id")
        .aggregate(n=count())
        .window(fixed("1 hour"))
        .write("t", mode="log"),
        "Aggregate in the next stage",
    ),
    "topics and stages": (
        union(read("clicks"), TAKEN_BACK).aggregate(n=count()).window(fixed("1 hour")).write("t"),
        "both topics and stages",
    ),
    "one topic in two ways": (
        read("sensors", max_out_of_orderness="1 hour")
        .aggregate(n=count())
        .window(fixed("1 hour"))
        .write("t")
        .also(TAKEN_BACK),
        "sensors is read with different options",
    ),
    "after all time": (after(EVER).window(fixed("1 hour")).write("t"), "narrower than those of minute"),
    "after the same windows without an end": (
        after(EVER).named("again").then().aggregate(n=count()).window(fixed("1 hour")).write("t"),
        "narrower than those of again",
    ),
    "a trigger that ends": (after(TAKEN_BACK).trigger(after_count(2)).write("t"), "it can finish"),
    "punctuation": (
        after(TAKEN_BACK).trigger(repeatedly(after_punctuation("hottest > 3"))).write("t"),
        "Use the punctuation in the first stage",
    ),
    "a step for Spark": (
        TAKEN_BACK.then().sql("SELECT * FROM input").aggregate(n=count()).write("t"),
        "SQL step over",
    ),
    "the order of arrival": (
        TAKEN_BACK.then().aggregate(all=collect("hottest", order="arrival")).write("t"),
        "panes have no arrival order",
    ),
    "a column that is not shown": (
        TAKEN_BACK.then().key("site").aggregate(n=count()).write("t"),
        "minute has: device, hottest, window_end, window_start",
    ),
    "an end that nobody reads": (
        TAKEN_BACK.also(after(TAKEN_BACK).named("lost")),
        "the result of lost is not used",
    ),
    "no windows to go on with": (
        read("sensors").aggregate(n=count()).window(same_windows()).write("t"),
        "same_windows() over records",
    ),
    "a table of newest rows": (
        read("sensors").key("device").stateful(alarm, state=Alarm, returns={"above": "DOUBLE"}).write("t"),
        "each row of a function is final",
    ),
    "a lookup by nothing, after a step": (
        read("sensors")
        .filter("temperature > 0")
        .lookup("latest/rooms", on="devcie", columns={"room": "STRING"})
        .aggregate(n=count())
        .window(fixed("1 hour"))
        .write("t"),
        "the records have no field 'devcie'",
    ),
    "a sum of text": (
        read("sensors").aggregate(n=sum_("device")).window(fixed("1 hour")).write("t"),
        "aggregate.n: 'device' is STRING, which has no sum",
    ),
    "a list for a key": (
        read("tweets").key("hashtags").aggregate(n=count()).window(fixed("1 hour")).write("t"),
        "key: 'hashtags' is ARRAY<STRING>. Group by a scalar field",
    ),
    "quantiles of text": (
        read("sensors").aggregate(n=quantiles("device", 0.5)).window(fixed("1 hour")).write("t"),
        "aggregate.n: 'device' is STRING, which has no quantiles",
    ),
    "no columns": (
        TAKEN_BACK.then().arrow(add_degrees).write("t"),
        "Add aggregates, as in aggregate",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_it_is_refused_with_the_reason(name: str) -> None:
    pipeline, says = WRONG[name]
    with pytest.raises(DefinitionError) as refused:
        _ = pipeline.to_plan("wrong")
    assert says in str(refused.value)
    assert refused.value.location


def test_a_join_of_a_union_is_refused_at_once() -> None:
    with pytest.raises(DefinitionError, match=r"join: of a union\. Unite the inputs in a stage"):
        join(union(TAKEN_BACK, OTHER), TAKEN_BACK, by="device")


@pytest.mark.parametrize("returns", [{}, {"n": "NUMBER"}])
def test_rows_without_columns_that_are_known_are_refused(returns: dict[str, str]) -> None:
    import pyarrow as pa

    from penstock.engine.operators.stage_graph import compile_graph

    def define() -> Any:
        pipeline = read("sensors").key("device").stateful(alarm, state=Alarm, returns=returns)
        return compile_graph(
            (plan := pipeline.write("t", mode="log").plan),
            {plan.first_source_stage.name: {"device": pa.string()}},
        )

    with pytest.raises(DefinitionError, match=r"no columns|Write one of: STRING"):
        define()


TYPED = {
    "stateful.returns.n": lambda: read("sensors").stateful(alarm, state=Alarm, returns={"n": "BIGNT"}),
    "read_panes.columns.n": lambda: read_panes("panes", columns={"n": "DECIMAL(10,2)"}, lateness="1 hour"),
    "map.returns.n": lambda: read("sensors").map(dict, returns={"n": "ARRAY<NUMBER>"}),
}


@pytest.mark.parametrize("place", TYPED)
def test_a_word_that_names_no_type_is_refused_where_it_is_written(place: str) -> None:
    with pytest.raises(DefinitionError, match="Write one of: STRING") as refused:
        TYPED[place]()
    assert refused.value.field == place


def test_a_column_that_no_step_made_is_named_when_a_stream_is_made_ready() -> None:
    import pyarrow as pa

    from penstock.engine.operators.stage_graph import compile_graph

    per_site = read("sensors").sql("SELECT site AS place FROM input").key("palce").aggregate(n=count())
    plan = per_site.window(fixed("1 hour")).write("per_site").plan
    with pytest.raises(DefinitionError, match="key: 'palce' is not a column of sensors after its SQL step"):
        compile_graph(plan, {plan.first_source_stage.name: {"place": pa.string(), "_time": pa.int64()}})
