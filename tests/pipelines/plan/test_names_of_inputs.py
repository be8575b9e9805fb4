"""A record says its topic: who asks for the records of one input must call it as its topic is called."""

from dataclasses import replace

import pytest

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model import count, fixed, join, of, read
from penstock.pipelines.plan import Files, Plan, Topic, check
from penstock.pipelines.plan.aggregates import Members, OfInput

ONE_SIDED = (
    read("clicks").aggregate(n=of("clicks", count())).window(fixed("1 hour")).write("t").named("named").plan
)
JOINED = (
    join(read("clicks"), read("cards"), by="id")
    .window(fixed("1 hour"))
    .write("t", mode="log")
    .named("named")
    .plan
)


def called(plan: Plan, name: str) -> Plan:
    """The same plan with another name for its first input, wherever it speaks of it."""
    (stage,), was = plan.stages, plan.sources[0].name
    outputs = tuple(
        replace(output, of=replace(output.of, input=name))
        if isinstance(output.of, OfInput | Members) and output.of.input == was
        else output
        for output in stage.aggregates
    )
    sides = stage.join and replace(
        stage.join,
        left=name,
        columns=tuple(replace(c, input=name) if c.input == was else c for c in stage.join.columns),
    )
    inputs = tuple(name if each == was else each for each in stage.inputs)
    stage = replace(stage, inputs=inputs, aggregates=outputs, join=sides)
    return replace(plan, sources=(replace(plan.sources[0], name=name), *plan.sources[1:]), stages=(stage,))


@pytest.mark.parametrize("plan", [ONE_SIDED, JOINED], ids=["an aggregate of one input", "a join"])
def test_an_input_that_is_told_apart_is_called_as_its_topic(plan: Plan) -> None:
    with pytest.raises(DefinitionError, match="Call the input clicks, here and where named speaks of it"):
        check(called(plan, "visits"))
    assert check(called(plan, "clicks")) == plan


def test_stored_records_are_of_the_input_that_they_are_read_as() -> None:
    plan = called(ONE_SIDED, "visits")
    stored = replace(plan.sources[0], origin=Files("raw/clicks"))
    assert check(replace(plan, sources=(stored,))).sources == (stored,)


def test_who_asks_for_all_records_may_call_an_input_as_he_likes() -> None:
    plan = read("clicks").aggregate(n=count()).window(fixed("1 hour")).write("t").named("named").plan
    other = called(plan, "visits")
    assert check(other).sources[0].origin == Topic("clicks")
