"""Which fields of its inputs a stage uses, and that inputs agree on the types of those that it uses of several."""

from collections.abc import Iterable, Mapping, Sequence

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.aggregates import Members, OfInput, aggregate_fields
from penstock.pipelines.plan.pairing import AsOf
from penstock.pipelines.plan.policies import DeltaPolicy, PunctuationPolicy
from penstock.pipelines.plan.predicates import Predicate, predicate_fields
from penstock.pipelines.plan.source import Source, Topic
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.steps import Types
from penstock.pipelines.plan.triggers import punctuations
from penstock.pipelines.plan.windows import SlidingOrder, Tumbling, Window


def used_fields(stage: Stage, input_: str) -> Iterable[tuple[str, str]]:
    """Yield where a field of an input is named, and the field."""
    yield from (("key", name) for name in stage.key)
    for output in stage.aggregates:
        if not isinstance(output.of, OfInput | Members) or output.of.input == input_:
            place = f"aggregate.{output.name}" if stage.join is None else "join.take"
            yield from ((place, name) for name in aggregate_fields(output.of))
    for place, predicate in conditions(stage, input_):
        yield from ((place, name) for name in predicate_fields(predicate))
    yield from (("window.delta.field", name) for name in distances(stage.window))


def distances(window: Window) -> tuple[str, ...]:
    """Return the fields of which an order window takes distances."""
    match window:
        case Tumbling(close):
            policies: tuple[object, ...] = (close,)
        case SlidingOrder(evict, show):
            policies = (evict, show)
        case _:
            policies = ()
    return tuple(policy.field for policy in policies if isinstance(policy, DeltaPolicy))


def conditions(stage: Stage, input_: str) -> Iterable[tuple[str, Predicate]]:
    """Yield where a condition on a record of an input is written, and the condition."""
    yield from (("trigger.after_punctuation", each) for each in punctuations(stage.trigger))
    match stage.window:
        case Tumbling(PunctuationPolicy(predicate)):
            yield "window.punctuation", predicate
        case AsOf(ends=ends) if ends is not None and stage.join is not None and input_ == stage.join.right:
            yield "window.as_of.ends", ends


def using(stage: Stage, field: str) -> tuple[str, ...]:
    """Return the inputs of which a stage uses a field of this name."""
    return tuple(name for name in stage.inputs if field in {used for _, used in used_fields(stage, name)})


def refuse_other_names(stage: Stage, sources: Iterable[Source]) -> None:
    """Refuse an input that is called otherwise than its topic, where a stage tells inputs apart.

    A record says its topic, and nothing else of the input that it is of.
    """
    apart = stage.join is not None or any(
        isinstance(output.of, OfInput | Members) for output in stage.aggregates
    )
    for source in sources:
        if apart and isinstance(source.origin, Topic) and source.origin.topic != source.name:
            raise DefinitionError(
                f"read.{source.name}",
                f"it is called otherwise than its topic {source.origin.topic}, and {stage.name} asks for "
                "records of one input alone",
                f"Call the input {source.origin.topic}, here and where {stage.name} speaks of it",
            )


def refuse_two_types(stage: Stage, known: Mapping[str, Types | None], *, panes: bool = False) -> None:
    """Refuse a field that inputs have with different types, where it is used of more than one of them.

    What nobody uses, or of one input alone, may be of any type in the others. Steps that all inputs go through
    together may use whatever they like. `panes`: the inputs are stages.
    """
    for field in sorted({name for columns in known.values() for name in columns or ()}):
        having = [name for name, columns in known.items() if columns and columns.get(field)]
        types = {name: str((known[name] or {})[field]) for name in having}
        wanted = [name for name in having if stage.steps or name in using(stage, field)]
        if len({types[name].lower() for name in wanted}) > 1:
            one, *others = wanted
            other = next(name for name in others if types[name].lower() != types[one].lower())
            renamed = f"select(other_{field}={field!r}, ...)"
            fix = f"as in read({other!r}).{renamed}, or one type in both contracts"
            raise DefinitionError(
                f"{'then' if panes else 'read'}.{field}",
                f"it is {types[other]} in {other} and {types[one]} in {one}",
                f"Give it another name before, {f'as in {other}.then().{renamed}' if panes else fix}",
            )


def left_out(stage: Stage, known: Mapping[str, Types]) -> Mapping[str, Sequence[str]]:
    """Return of each input the fields that another one has with another type, and that are not used of it."""
    every = {field for columns in known.values() for field in columns}
    quarrel = [
        field
        for field in sorted(every)
        if len({columns[field] for columns in known.values() if columns.get(field)}) > 1
    ]
    return {
        name: [field for field in quarrel if columns.get(field) and name not in using(stage, field)]
        for name, columns in known.items()
    }
