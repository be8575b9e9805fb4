"""A record says its topic: who asks for the records of one input must call it as its topic is called."""

from dataclasses import replace

import pytest

from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.aggregates.of_input import OfInput
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.sources import FileOrigin, TopicOrigin
from penstock.engine.plan.stages import Plan
from penstock.engine.plan.validation.plans import validate_plan
from penstock.stream import count, fixed, join, of, read

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
        replace(output, aggregate=replace(output.aggregate, input=name))
        if isinstance(output.aggregate, OfInput | JoinMembers) and output.aggregate.input == was
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
    with pytest.raises(DefinitionError, match="Rename the input to clicks, here and in named"):
        validate_plan(called(plan, "visits"))
    assert validate_plan(called(plan, "clicks")) == plan


def test_stored_records_are_of_the_input_that_they_are_read_as() -> None:
    plan = called(ONE_SIDED, "visits")
    stored = replace(plan.sources[0], origin=FileOrigin("raw/clicks"))
    assert validate_plan(replace(plan, sources=(stored,))).sources == (stored,)


def test_who_asks_for_all_records_may_call_an_input_as_he_likes() -> None:
    plan = read("clicks").aggregate(n=count()).window(fixed("1 hour")).write("t").named("named").plan
    other = called(plan, "visits")
    assert validate_plan(other).sources[0].origin == TopicOrigin("clicks")
