"""Several inputs in one pass: which topic is whose, and SQL that depends on the input that a record is of."""

from collections.abc import Callable, Mapping, Sequence

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.source import Source

Sources = Sequence[Source]


def by_topic(sources: Sources, column: str, sql: Callable[[int, Source], str | None]) -> str:
    """SQL that is another for each input; null for those that have none. `column` holds a record's topic."""
    said = [(topic_of(source), sql(number, source)) for number, source in enumerate(sources)]
    if len(said) == 1:
        return said[0][1] or "NULL"
    cases = " ".join(f"WHEN '{topic}' THEN {text}" for topic, text in said if text is not None)
    return f"CASE {column} {cases} END"


def columns_of(sources: Sources) -> Mapping[str, str]:
    """The fields of all inputs by name, with their types; a record has nulls where its input has no such field."""
    types: dict[str, str] = {}
    for source in sources:
        for column in source.columns:
            known = types.setdefault(column.name, column.type)
            if known.lower() != column.type.lower():
                raise DefinitionError(
                    f"read.{column.name}",
                    f"it is {column.type} in {source.name} and {known} in an input before it",
                    "Give the field one type in all contracts, or read the inputs in pipelines of their own",
                )
    return types


def refuse_one_topic_twice(sources: Sources) -> None:
    """Refuse inputs that a record cannot be told to be of."""
    topics = [topic_of(source) for source in sources]
    for topic in topics:
        if topics.count(topic) > 1:
            fix = "Read it once; two readings of one record are two pipelines"
            raise DefinitionError("read", f"the topic {topic} is read twice", fix)
