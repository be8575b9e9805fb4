"""Other ends of a graph are run wherever it was said that they are there."""

import pytest

from penstock.stream import Pipeline, count, fixed, join, max_, read, sum_, union


def counted(table: str) -> Pipeline:
    """Records of sensors by device and minute."""
    counting = read("sensors").key("device").aggregate(**{f"n_{table}": count()}).window(fixed("1 minute"))
    return counting.accumulation("retracting").write(table)


MINUTES, OTHERS, ASIDE = counted("minutes"), counted("others"), counted("aside")
WITH_ASIDE = MINUTES.also(ASIDE)
BESIDE: dict[str, Pipeline] = {
    "itself": MINUTES.then().aggregate(most=max_("n_minutes")).write("end").also(ASIDE),
    "the stage before": WITH_ASIDE.then().aggregate(most=max_("n_minutes")).write("end"),
    "the stage before that": WITH_ASIDE.then().aggregate(most=max_("n_minutes")).then()
    .aggregate(most=max_("most")).write("end"),
    "one of two stages": OTHERS.then(WITH_ASIDE).aggregate(n=sum_("n_minutes")).write("end"),
    "a side of a join": join(OTHERS, WITH_ASIDE, by="device").write("end", mode="log"),
    "a part of a union": union(OTHERS, WITH_ASIDE).aggregate(n=sum_("n_minutes")).write("end"),
    "an input": union(read("clicks"), read("cards").also(ASIDE)).aggregate(n=count())
    .window(fixed("1 hour")).write("end"),
    "both": WITH_ASIDE.then().aggregate(most=max_("n_minutes")).write("end").also(ASIDE),
}  # fmt: skip


@pytest.mark.parametrize("where", BESIDE)
def test_an_end_runs_once_whatever_it_was_said_of(where: str) -> None:
    plan = BESIDE[where].to_plan("graph")
    assert [stage.name for stage in plan.stages].count("aside") == 1
    (end,) = (stage for stage in plan.stages if stage.name == "graph")
    assert [sink.table for sink in end.sinks] == ["end"]
