"""The columns of results: type, what made it, from which fields, and whether it tells of a person."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from penstock.pipelines.plan import (
    Aggregate,
    LatestValues,
    Lookup,
    OfInput,
    PaneLog,
    PerRow,
    Plan,
    Remembering,
    Select,
    Sink,
    Stage,
    Step,
    aggregate_fields,
)
from penstock.pipelines.plan.columns import BOUNDS
from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.windows import OrderWindow, Sessions
from penstock.pipelines.tables.latest import SHOWN_ONCE
from penstock.platform.origins import Field, Origin, origins

_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")

PANE = (
    ("window_start", "timestamp", "the window's first moment"),
    ("window_end", "timestamp", "the first moment after the window"),
    ("pane", "int", "0, 1, 2 … for each key and window"),
    ("timing", "string", "early, on_time or late"),
    ("on_time_index", "int", "-1 for early panes, then 0, 1 …"),
    ("final", "boolean", "whether nothing comes for the window after it"),
    ("kind", "string", "insert, or retract for values that are taken back"),
    ("records", "bigint", "how many records are in it"),
    ("batch_id", "bigint", "the batch that wrote it"),
    ("batch_clock", "timestamp", "the batch's clock"),
    ("watermark", "timestamp", "the watermark after the batch"),
)
"""The columns of every pane, after its key and its values."""

REPLACED = (
    ("replaced_by_start", "timestamp", "the first moment of the session that swallowed it"),
    ("replaced_by_end", "timestamp", "the first moment after that session"),
)
"""Columns of panes of sessions, where what was swallowed is not taken back."""
NUMBERED = (("window_number", "bigint", "which of the key's windows it is, from 0"),)
"""The column of panes of order windows."""


@dataclass(frozen=True)
class Described:
    """A column of a table. `said` is what made it; it is `personal` where it may show who a record is of."""

    name: str
    type: str
    said: str
    origin: Origin
    personal: bool


def described(plan: Plan, stage: Stage, sink: Sink, personal: Collection[Field] = ()) -> list[Described]:
    """Return what a stage writes to a table: the key, its outputs, and what is told of every pane.

    `personal` names fields, each with its topic, that tell of a person; a column that shows one does, too.
    """
    output = output_of(sink)
    types, found, telling = read_types(plan, stage), origins(plan, stage, output), frozenset(personal)
    named = [
        *((name, types.get(name, "string"), "part of the key") for name in stage.key),
        *_said(stage, types, output),
    ]
    ours = [
        Described(name, kind, said, found[name], bool(found[name].shown & telling))
        for name, kind, said in named
    ]
    unsaid = SHOWN_ONCE if isinstance(sink, LatestValues) else ()
    of_panes = (*PANE, *_besides(stage))
    return [
        *ours,
        *(Described(*each, Origin(), personal=False) for each in of_panes if each[0] not in unsaid),
    ]


def output_of(sink: Sink) -> str | None:
    """Whose rows of a function a table takes, where it tells them to several places; None for its own."""
    return sink.output if isinstance(sink, PaneLog) else None


def _besides(stage: Stage) -> tuple[tuple[str, str, str], ...]:
    """What is told of the panes of some windows only."""
    if isinstance(stage.window, Sessions) and stage.accumulation != "retracting":
        return REPLACED
    return NUMBERED if isinstance(stage.window, OrderWindow) else ()


def _said(stage: Stage, types: Mapping[str, str], output: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield name and type of each value of a stage, and what made it."""
    match stage.window:
        case Remembering() as window:
            told = f"told by {window.function.name}"
            yield from ((c.name, c.type.lower(), told) for c in window.columns_to(output))
        case Relayed(columns=columns):
            yield from ((c.name, c.type.lower(), "as it was published") for c in columns)
        case _:
            yield from ((value.name, value.type_of(types), value.said) for value in values(stage))


def read_types(plan: Plan, stage: Stage) -> dict[str, str]:
    """The types of the fields that a stage finds after its steps, by contracts or from the stages before it.

    A step whose text does not tell leaves a name the type that it had.
    """
    found: dict[str, str] = {}
    for name in stage.inputs:
        types = _types_of(plan, name)
        for step in (*stage.steps_of(name), *stage.steps):
            types = _stepped(types, step)
        found |= types
    return found


def _types_of(plan: Plan, name: str) -> dict[str, str]:
    """The types of what is read from an input, or shown by a stage before."""
    source = next((each for each in plan.sources if each.name == name), None)
    if source is not None:
        return {column.name: column.type.lower() for column in source.columns}
    before = next(each for each in plan.stages if each.name == name)
    below = read_types(plan, before)
    keys = {each: below.get(each, "string") for each in before.key}
    shown = {each: kind for each, kind, _ in _said(before, below, None)}
    return keys | shown | dict.fromkeys(BOUNDS, "timestamp")


def _stepped(types: dict[str, str], step: Step) -> dict[str, str]:
    match step:
        case Select(pairs):
            return {new: types[old] for new, old in pairs if old in types}
        case PerRow(returns=columns):
            return {column.name: column.type.lower() for column in columns}
        case Lookup(columns=columns):
            return types | {column.name: column.type.lower() for column in columns}
        case _:
            return types


@dataclass(frozen=True)
class Value:
    """A column that a stage shows beside its key, what made it, and from which fields."""

    name: str
    said: str
    made_from: tuple[str, ...]
    of: Aggregate | None = None

    def type_of(self, types: Mapping[str, str]) -> str:
        """Its type, where those of the fields are known; a joined column has the type of its field."""
        return types.get(self.made_from[0], "string") if self.of is None else _output_type(self.of, types)


def values(stage: Stage) -> list[Value]:
    """The columns that a stage computes, or takes from the two sides of its join."""
    if stage.join is not None:
        taken = stage.join.columns
        return [Value(c.name, f"{c.input}.{c.field}", (c.field,)) for c in taken]
    return [
        Value(each.name, formula(each.of), aggregate_fields(each.of), each.of) for each in stage.aggregates
    ]


def formula(aggregate: Aggregate) -> str:
    """An aggregate as a person writes it: mean(temperature)."""
    if isinstance(aggregate, OfInput):
        return f"of({aggregate.input}, {formula(aggregate.of)})"
    return f"{type(aggregate).__name__.lower()}({', '.join(aggregate_fields(aggregate))})"


def _output_type(aggregate: Aggregate, types: Mapping[str, str]) -> str:
    if isinstance(aggregate, OfInput):
        return _output_type(aggregate.of, types)
    match type(aggregate).__name__:
        case "Count" | "Distinct":
            return "bigint"
        case "Mean":
            return "double"
        case "Custom":
            return "string"
    kind = types.get(aggregate_fields(aggregate)[0], "string")
    match type(aggregate).__name__:
        case "Sum":
            return _summed(kind)
        case "Quantiles":
            return f"array<{'double' if kind.startswith('decimal') else kind}>"
        case "TopN" | "Collect":
            return f"array<{kind}>"
        case _:
            return kind


def _summed(kind: str) -> str:
    """The type of a sum, which has room for more than a value has."""
    if decimal := _DECIMAL.fullmatch(kind):
        return f"decimal({min(int(decimal[1]) + 10, 38)},{decimal[2]})"
    return "bigint" if kind in ("tinyint", "smallint", "int", "bigint") else "double"
