"""From which fields of which topics a column of a result is made, and which it shows: the same for all who ask.

Followed through stages, joins, `select`, and SQL whose text tells (`projections.py`). What cannot be followed is
taken to be made from everything that the stage reads, and to show it: what a function makes of a person's records
tells of that person until somebody says otherwise. A function over frames is taken to leave a name what it was.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from penstock.pipelines.plan import (
    Aggregate,
    Collect,
    Custom,
    First,
    Last,
    Lookup,
    Max,
    Min,
    OfInput,
    PerRow,
    Plan,
    Remembering,
    Select,
    Source,
    Sql,
    Stage,
    Step,
    Topic,
    TopN,
    aggregate_fields,
)
from penstock.pipelines.plan.columns import BOUNDS, values_of
from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.steps import Keep
from penstock.platform.projections import Projected, projected

Field = tuple[str, str]
"""A topic, and one of its fields."""


@dataclass(frozen=True)
class Origin:
    """The fields that a column is made from, and those whose values it shows, or may show."""

    made: frozenset[Field] = frozenset()
    shown: frozenset[Field] = frozenset()

    def __or__(self, other: "Origin") -> "Origin":
        return Origin(self.made | other.made, self.shown | other.shown)

    @property
    def hidden(self) -> "Origin":
        """The same of a column that shows none of it, as a count or a mean."""
        return Origin(self.made)


def together(origins: Iterable[Origin]) -> Origin:
    """Return what columns are made from when one is made of all of them."""
    return reduce(Origin.__or__, origins, Origin())


@dataclass(frozen=True)
class Columns:
    """The columns that there are, by name, and where a column is from that nobody has named."""

    known: Mapping[str, Origin]
    unnamed: Origin = field(default_factory=Origin)

    def of(self, name: str) -> Origin:
        """Return where a column is from."""
        return self.known.get(name, self.unnamed)

    @property
    def all(self) -> Origin:
        """What a column is made from that may be made from any of them."""
        return together([*self.known.values(), self.unnamed])


def origins(plan: Plan, stage: Stage, output: str | None = None) -> dict[str, Origin]:
    """Return where the key and the values of a stage are from, in their order; a count is from no field.

    Of a function that tells rows to several places, `output` names one. Columns that every pane has are left out.
    """
    read = {
        name: _after(stage.steps, _after(stage.steps_of(name), _input(plan, name))) for name in stage.inputs
    }
    every = together(columns.all for columns in read.values())
    key = {name: together(columns.of(name) for columns in read.values()) for name in stage.key}
    return key | _values(stage, read, every, output)


def _input(plan: Plan, name: str) -> Columns:
    source = next((each for each in plan.sources if each.name == name), None)
    if source is not None:
        return Columns({column.name: _of_field(source, column.name) for column in source.columns})
    before = next(each for each in plan.stages if each.name == name)
    return Columns(origins(plan, before) | dict.fromkeys(BOUNDS, Origin()))


def _of_field(source: Source, name: str) -> Origin:
    if not isinstance(source.origin, Topic):
        return Origin()
    itself = frozenset([(source.origin.topic, name)])
    return Origin(itself, itself)


def _values(
    stage: Stage, read: Mapping[str, Columns], every: Origin, output: str | None
) -> dict[str, Origin]:
    match stage.window:
        case Remembering() as function:
            return dict.fromkeys((column.name for column in function.columns_to(output)), every)
        case Relayed():
            return {
                name: together(columns.of(name) for columns in read.values()) for name in values_of(stage)
            }
    if stage.join is not None:
        return {each.name: read[each.input].of(each.field) for each in stage.join.columns}
    return {output.name: _of_aggregate(output.of, read) for output in stage.aggregates}


def _of_aggregate(aggregate: Aggregate, read: Mapping[str, Columns]) -> Origin:
    if isinstance(aggregate, OfInput):
        return _of_aggregate(aggregate.of, {aggregate.input: read[aggregate.input]})
    made, shown = (
        together(columns.of(name) for columns in read.values() for name in names)
        for names in (aggregate_fields(aggregate), shown_fields(aggregate))
    )
    return made.hidden | shown


def shown_fields(aggregate: Aggregate) -> tuple[str, ...]:
    """The fields whose values an aggregate shows as they are; a count or a mean shows none of them."""
    match aggregate:
        case Min(name) | Max(name) | First(name) | Last(name) | Collect(name):
            return (name,)
        case TopN(field=name, by=by):
            return (name,) if by is None else (name, by)
        case Custom(names):
            return names
        case OfInput(of=of):
            return shown_fields(of)
        case _:
            return ()


def _after(steps: Iterable[Step], columns: Columns) -> Columns:
    return reduce(_stepped, steps, columns)


def _stepped(columns: Columns, step: Step) -> Columns:
    match step:
        case Keep():
            return columns
        case Select(pairs):
            return Columns({new: columns.of(old) for new, old in pairs})
        case PerRow(returns=returns):
            return Columns({column.name: columns.all for column in returns})
        case Lookup(on=on, columns=added):
            found = together(columns.of(name) for name in on)
            return Columns({**columns.known, **{each.name: found for each in added}}, columns.unnamed)
        case Sql(text) if (chosen := projected(text)) is not None:
            return _selected(columns, chosen)
        case _:
            return Columns(columns.known, columns.all)


def _selected(columns: Columns, chosen: Iterable[Projected]) -> Columns:
    """The columns of a SELECT; Spark does not tell names apart that are written otherwise."""
    written = {name.lower(): origin for name, origin in columns.known.items()}
    known: dict[str, Origin] = {}
    unnamed = Origin()
    for each in chosen:
        if each.name is None:
            known |= columns.known
            unnamed = columns.unnamed
        else:
            found = [written[name] for name in each.names if name in written]
            beyond = [columns.unnamed] if each.names - set(written) else []
            known[each.name] = together([*found, *beyond])
    return Columns(known, unnamed)
