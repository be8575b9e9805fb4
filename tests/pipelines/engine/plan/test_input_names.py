"""Records carry their topic, so an input that a plan refers to must have the name of its topic."""

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


def rename_input(plan: Plan, name: str) -> Plan:
    """Return the plan with another name for its first input, wherever it is used."""
    (stage,), old_name = plan.stages, plan.sources[0].name
    outputs = tuple(
        replace(output, aggregate=replace(output.aggregate, input=name))
        if isinstance(output.aggregate, OfInput | JoinMembers) and output.aggregate.input == old_name
        else output
        for output in stage.aggregates
    )
    sides = stage.join and replace(
        stage.join,
        left=name,
        columns=tuple(
            replace(column, input=name) if column.input == old_name else column
            for column in stage.join.columns
        ),
    )
    inputs = tuple(name if input_name == old_name else input_name for input_name in stage.inputs)
    stage = replace(stage, inputs=inputs, aggregates=outputs, join=sides)
    return replace(plan, sources=(replace(plan.sources[0], name=name), *plan.sources[1:]), stages=(stage,))


@pytest.mark.parametrize("plan", [ONE_SIDED, JOINED], ids=["an aggregate of one input", "a join"])
def test_an_input_that_is_referred_to_needs_the_name_of_its_topic(plan: Plan) -> None:
    with pytest.raises(DefinitionError, match="Rename the input to clicks, here and in named"):
        validate_plan(rename_input(plan, "visits"))
    assert validate_plan(rename_input(plan, "clicks")) == plan


def test_stored_records_belong_to_the_input_that_reads_them() -> None:
    plan = rename_input(ONE_SIDED, "visits")
    stored = replace(plan.sources[0], origin=FileOrigin("raw/clicks"))
    assert validate_plan(replace(plan, sources=(stored,))).sources == (stored,)


def test_an_input_that_is_not_referred_to_may_have_any_name() -> None:
    plan = read("clicks").aggregate(n=count()).window(fixed("1 hour")).write("t").named("named").plan
    other = rename_input(plan, "visits")
    assert validate_plan(other).sources[0].origin == TopicOrigin("clicks")
