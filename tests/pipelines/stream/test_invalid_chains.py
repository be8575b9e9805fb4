"""Stages that cannot follow each other, and misplaced functions, are refused by name."""

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

HOTTEST = read("sensors").key("device").aggregate(hottest=max_("temperature")).window(fixed("1 minute"))
RETRACTING = HOTTEST.trigger(lateness="1 hour").accumulation("retracting").write("minute")
REPEATED = HOTTEST.trigger(repeatedly(after_count(1))).write("minute")
PROCESSING_TIME = (
    read("sensors").aggregate(n=count()).window(fixed("1 minute", time="processing")).write("minute")
)
OTHER_RETRACTING = HOTTEST.accumulation("retracting").write("other")
HOURS = read("sensors").key("device").aggregate(n=count()).window(fixed("1 hour")).write("other")
GLOBAL_RETRACTING = (
    read("sensors").aggregate(n=count()).window(global_window()).accumulation("retracting").write("minute")
)
INTERVAL_JOIN = (
    join(read("clicks"), read("cards"), by="id", how="left", take={"clicked": "clicks.id"})
    .window(between("0 s", "1 minute"))
    .write("minute", mode="log")
)


def count_panes_of(first: Pipeline) -> Pipeline:
    """A stage that counts the panes of another one."""
    return first.then().aggregate(n=count())


INVALID_CHAINS: dict[str, tuple[Pipeline, str]] = {
    "repeated panes without retraction": (
        count_panes_of(REPEATED).write("t"),
        "emits a window again without retracting",
    ),
    "accumulating over retracting panes": (
        count_panes_of(RETRACTING).accumulation("accumulating").write("t"),
        "over panes that are retracted",
    ),
    "less lateness than upstream": (
        count_panes_of(RETRACTING).trigger(lateness="1 minute").write("t"),
        "Set at least 3600000 ms",
    ),
    "order windows over panes": (
        count_panes_of(RETRACTING).window(tumbling(records(2))).write("t"),
        "an order window over panes",
    ),
    "sessions over panes": (
        count_panes_of(RETRACTING).window(sessions("1 minute")).write("t"),
        "a session does not shrink",
    ),
    "processing time over panes": (
        count_panes_of(RETRACTING).window(fixed("1 hour", time="processing")).write("t"),
        "processing-time windows over panes",
    ),
    "less lateness than an interval join": (
        INTERVAL_JOIN.then()
        .aggregate(n=count())
        .window(fixed("1 hour"))
        .trigger(lateness="59 seconds")
        .write("t"),
        "Set at least 60000 ms, because",
    ),
    "event time after processing time": (
        count_panes_of(PROCESSING_TIME).window(fixed("1 hour")).write("t"),
        "may end behind the watermark",
    ),
    "a join of a topic with itself": (
        join(read("clicks"), read("clicks"), by="user").window(fixed("1 hour")).write("t", mode="log"),
        "clicks is read twice in one stage",
    ),
    "a join of a stage with itself": (
        join(RETRACTING, RETRACTING, by="device").write("t", mode="log"),
        "join: minute is read twice in one stage. Join two stages that read it",
    ),
    "a join of a stage and a topic": (
        join(RETRACTING, read("sensors"), by="device").write("t", mode="log"),
        "both topics and stages",
    ),
    "a named input without a window": (
        join(read("clicks").named("seen"), read("cards"), by="id")
        .window(fixed("1 hour"))
        .write("t", mode="log"),
        "window: seen has no window",
    ),
    "deduplication of panes": (
        RETRACTING.then().deduplicate("device").aggregate(n=count()).write("t"),
        "deduplicate: set for panes",
    ),
    "a join column that one side lacks": (
        join(RETRACTING, HOURS.accumulation("retracting"), by="device", take={"n": "minute.n"})
        .window(fixed("1 hour"))
        .write("t", mode="log"),
        "the input of invalid has no column 'n'. Columns of minute: device, hottest, window_start, window_end",
    ),
    "two stages with one name": (
        count_panes_of(RETRACTING).named("minute").write("t"),
        "name: 'minute' is used twice",
    ),
    "a join into a table of latest values": (
        join(read("clicks"), read("cards"), by="id").window(fixed("1 hour")).write("t"),
        "a window may have many joined rows",
    ),
    "two stages into one table": (
        RETRACTING.also(read("cards").aggregate(n=count()).window(fixed("1 hour")).write("minute")),
        "table minute is written by both invalid and minute",
    ),
    "two stages into one topic": (
        RETRACTING.publish("panes").also(OTHER_RETRACTING.publish("panes")),
        "topic panes is written by both invalid and other",
    ),
    "a discarding join": (
        join(read("clicks"), read("cards"), by="id")
        .window(fixed("1 hour"))
        .accumulation("discarding")
        .write("t", mode="log"),
        "a pair whose sides arrive in different panes would be lost",
    ),
    "a join of different windows": (
        join(RETRACTING, HOURS, by="device").write("t", mode="log"),
        "minute and other have different windows, so their rows can never match",
    ),
    "a join in order windows": (
        join(read("clicks"), read("cards"), by="id").window(tumbling(records(2))).write("t", mode="log"),
        "an order window for a join",
    ),
    "an interval without a join": (
        read("clicks").aggregate(n=count()).window(between("0 s", "1 minute")).write("t"),
        "Start with join",
    ),
    "an as-of join with a trigger": (
        join(read("clicks"), read("cards"), by="id")
        .window(as_of())
        .trigger(repeatedly(after_count(1)))
        .write("t", mode="log"),
        "a row is emitted once, when it is final",
    ),
    "a full as-of join": (
        join(read("clicks"), read("cards"), by="id", how="full").window(as_of()).write("t", mode="log"),
        "Write inner, left, semi or anti",
    ),
    "an interval join of panes": (
        join(RETRACTING, HOTTEST.accumulation("retracting").write("other"), by="device")
        .window(between("0 s", "1 minute"))
        .write("t", mode="log"),
        "Join panes in their own windows",
    ),
    "a column of neither input": (
        join(read("clicks"), read("cards"), by="id", take=["colour"])
        .window(fixed("1 hour"))
        .write("t", mode="log"),
        "no input has a field 'colour'",
    ),
    "a column of both inputs": (
        join(read("clicks"), read("cards"), by="id", take=["at"])
        .window(fixed("1 hour"))
        .write("t", mode="log"),
        "Name the input, as in 'clicks.at'",
    ),
    "a column of the other side of a semi join": (
        join(read("clicks"), read("cards"), by="id", how="semi", take={"paid": "cards.amount"})
        .window(fixed("1 hour"))
        .write("t", mode="log"),
        "a semi join returns only its elements",
    ),
    "a join key of one input": (
        join(read("clicks"), read("cards"), by="user").window(fixed("1 hour")).write("t", mode="log"),
        "cards has no field 'user'",
    ),
    "a join key of two types": (
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
    "a union of topics and stages": (
        union(read("clicks"), RETRACTING).aggregate(n=count()).window(fixed("1 hour")).write("t"),
        "both topics and stages",
    ),
    "a topic with two sets of options": (
        read("sensors", max_out_of_orderness="1 hour")
        .aggregate(n=count())
        .window(fixed("1 hour"))
        .write("t")
        .also(RETRACTING),
        "sensors is read with different options",
    ),
    "after a global window": (
        count_panes_of(GLOBAL_RETRACTING).window(fixed("1 hour")).write("t"),
        "narrower than those of minute",
    ),
    "after an inherited global window": (
        count_panes_of(GLOBAL_RETRACTING)
        .named("again")
        .then()
        .aggregate(n=count())
        .window(fixed("1 hour"))
        .write("t"),
        "narrower than those of again",
    ),
    "a trigger that finishes": (
        count_panes_of(RETRACTING).trigger(after_count(2)).write("t"),
        "it fires a last time",
    ),
    "punctuation over panes": (
        count_panes_of(RETRACTING).trigger(repeatedly(after_punctuation("hottest > 3"))).write("t"),
        "Use the punctuation in the first stage",
    ),
    "an SQL step over panes": (
        RETRACTING.then().sql("SELECT * FROM input").aggregate(n=count()).write("t"),
        "SQL step over",
    ),
    "arrival order of panes": (
        RETRACTING.then().aggregate(all=collect("hottest", order="arrival")).write("t"),
        "panes have no arrival order",
    ),
    "a key that upstream lacks": (
        RETRACTING.then().key("site").aggregate(n=count()).write("t"),
        "Columns of minute: device, hottest, window_start, window_end",
    ),
    "a stage without a reader": (
        RETRACTING.also(count_panes_of(RETRACTING).named("lost")),
        "the result of lost is not used",
    ),
    "inherited windows over records": (
        read("sensors").aggregate(n=count()).window(same_windows()).write("t"),
        "same_windows() over records",
    ),
    "a function into a table of latest values": (
        read("sensors").key("device").stateful(alarm, state=Alarm, returns={"above": "DOUBLE"}).write("t"),
        "each row of a function is final",
    ),
    "a lookup by an unknown field after a step": (
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
    "a stage without aggregates": (
        RETRACTING.then().arrow(add_degrees).write("t"),
        "Add aggregates, as in aggregate",
    ),
}


@pytest.mark.parametrize("name", INVALID_CHAINS)
def test_an_invalid_chain_is_refused_with_the_reason(name: str) -> None:
    pipeline, message = INVALID_CHAINS[name]
    with pytest.raises(DefinitionError) as raised:
        _ = pipeline.to_plan("invalid")
    assert message in str(raised.value)
    assert raised.value.location


def test_a_join_of_a_union_is_refused_when_it_is_called() -> None:
    with pytest.raises(DefinitionError, match=r"join: of a union\. Unite the inputs in a stage"):
        join(union(RETRACTING, OTHER_RETRACTING), RETRACTING, by="device")


@pytest.mark.parametrize("returns", [{}, {"n": "NUMBER"}])
def test_a_function_without_known_columns_is_refused(returns: dict[str, str]) -> None:
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


UNKNOWN_TYPES = {
    "stateful.returns.n": lambda: read("sensors").stateful(alarm, state=Alarm, returns={"n": "BIGNT"}),
    "read_panes.columns.n": lambda: read_panes("panes", columns={"n": "DECIMAL(50,2)"}, lateness="1 hour"),
    "map.returns.n": lambda: read("sensors").map(dict, returns={"n": "ARRAY<NUMBER>"}),
}


@pytest.mark.parametrize("field", UNKNOWN_TYPES)
def test_an_unknown_type_is_refused_with_its_field(field: str) -> None:
    with pytest.raises(DefinitionError, match="Write one of: STRING") as raised:
        UNKNOWN_TYPES[field]()
    assert raised.value.field == field


def keep_rows(table: Any) -> Any:
    return table


def test_an_unknown_key_after_a_step_with_unknown_columns_is_named_by_the_compiler() -> None:
    import pyarrow as pa

    from penstock.engine.operators.stage_graph import compile_graph

    per_site = read("sensors").arrow(keep_rows).key("palce").aggregate(n=count())
    plan = per_site.window(fixed("1 hour")).write("per_site").plan
    with pytest.raises(DefinitionError, match="key: 'palce' is not a column of sensors after its Arrow step"):
        compile_graph(plan, {plan.first_source_stage.name: {"place": pa.string(), "_time": pa.int64()}})
