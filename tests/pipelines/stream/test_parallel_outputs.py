"""`also` adds a stage to the graph, whichever pipeline it is called on."""

import pytest

from penstock.stream import Pipeline, count, fixed, join, max_, read, sum_, union


def count_by_minute(table: str) -> Pipeline:
    """Count sensor records by device and minute."""
    counting = read("sensors").key("device").aggregate(**{f"n_{table}": count()}).window(fixed("1 minute"))
    return counting.accumulation("retracting").write(table)


MINUTES, OTHERS, EXTRA = count_by_minute("minutes"), count_by_minute("others"), count_by_minute("extra")
WITH_EXTRA = MINUTES.also(EXTRA)
GRAPHS: dict[str, Pipeline] = {
    "itself": MINUTES.then().aggregate(most=max_("n_minutes")).write("end").also(EXTRA),
    "the upstream stage": WITH_EXTRA.then().aggregate(most=max_("n_minutes")).write("end"),
    "the stage before the upstream stage": WITH_EXTRA.then().aggregate(most=max_("n_minutes")).then()
    .aggregate(most=max_("most")).write("end"),
    "one of two stages": OTHERS.then(WITH_EXTRA).aggregate(n=sum_("n_minutes")).write("end"),
    "a side of a join": join(OTHERS, WITH_EXTRA, by="device").write("end", mode="log"),
    "a side of a union": union(OTHERS, WITH_EXTRA).aggregate(n=sum_("n_minutes")).write("end"),
    "an input": union(read("clicks"), read("cards").also(EXTRA)).aggregate(n=count())
    .window(fixed("1 hour")).write("end"),
    "both stages": WITH_EXTRA.then().aggregate(most=max_("n_minutes")).write("end").also(EXTRA),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_an_added_stage_is_in_the_graph_once(name: str) -> None:
    plan = GRAPHS[name].to_plan("graph")
    assert [stage.name for stage in plan.stages].count("extra") == 1
    (end,) = (stage for stage in plan.stages if stage.name == "graph")
    assert [sink.table for sink in end.sinks] == ["end"]
