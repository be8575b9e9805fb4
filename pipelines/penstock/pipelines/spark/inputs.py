"""Several inputs in one pass: which topic is whose, and SQL that depends on the input that a record is of."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.plan.source import Source
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.used import using

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Sources = Sequence[Source]


def by_topic(sources: Sources, column: str, sql: Callable[[int, Source], str | None]) -> str:
    """SQL that is another for each input; null for those that have none. `column` holds a record's topic."""
    said = [(topic_of(source), sql(number, source)) for number, source in enumerate(sources)]
    if len(said) == 1:
        return said[0][1] or "NULL"
    cases = " ".join(f"WHEN '{topic}' THEN {text}" for topic, text in said if text is not None)
    return f"CASE {column} {cases} END" if cases else "NULL"


def fields_of(sources: Sources) -> Mapping[str, frozenset[str]]:
    """The fields of all inputs by name, with the types that they have: one, where inputs agree."""
    types: dict[str, frozenset[str]] = {}
    for source in sources:
        for column in source.columns:
            types[column.name] = types.get(column.name, frozenset()) | {column.type.lower()}
    return types


def disputed(sources: Sources) -> list[str]:
    """The fields that inputs have with different types."""
    return [name for name, types in fields_of(sources).items() if len(types) > 1]


def apart(number: int, field: str) -> str:
    """The column that holds a disputed field as the input of this number has it."""
    return f"_of_{number}_{field}"


def as_its_own(records: "DataFrame", source: Source, sources: Sources) -> "DataFrame":
    """Records of one input, with its fields and no others, each under its own name."""
    every = disputed(sources)
    number = list(sources).index(source)
    names = [column.name for column in source.columns]
    fields = [
        f"{quoted(apart(number, name))} AS {quoted(name)}" if name in every else quoted(name)
        for name in names
    ]
    return records.selectExpr(*_bookkeeping(records, sources), *fields)


def as_one(records: "DataFrame", stage: Stage, ours: Sources, sources: Sources) -> "DataFrame":
    """Records of all inputs of a stage, with the fields of all.

    Of a field about which these dispute there is what the stage uses; that the plan's check has agreed upon.
    """
    every = disputed(sources)
    quarrel = disputed(ours)
    fields = []
    for name in fields_of(ours):
        having = [source for source in ours if any(column.name == name for column in source.columns)]
        used = [source for source in having if name not in quarrel or source.name in using(stage, name)]
        if name not in every:
            fields.append(quoted(name))
        elif used:
            fields.append(f"{_of_whom(used, sources, name)} AS {quoted(name)}")
    return records.selectExpr(*_bookkeeping(records, sources), *fields)


def _of_whom(used: Sources, sources: Sources, name: str) -> str:
    """SQL for a disputed field, as the input of each record has it."""
    numbers = {source.name: number for number, source in enumerate(sources)}
    return by_topic(used, "_topic", lambda _, source: quoted(apart(numbers[source.name], name)))


def _bookkeeping(records: "DataFrame", sources: Sources) -> list[str]:
    """The columns that are ours and stay with every record."""
    hidden = {apart(number, name) for number in range(len(sources)) for name in disputed(sources)}
    return [quoted(name) for name in records.columns if name.startswith("_") and name not in hidden]


def refuse_one_topic_twice(sources: Sources) -> None:
    """Refuse inputs that a record cannot be told to be of."""
    topics = [topic_of(source) for source in sources]
    for topic in topics:
        if topics.count(topic) > 1:
            fix = "Read it once; two readings of one record are two pipelines"
            raise DefinitionError("read", f"the topic {topic} is read twice", fix)
