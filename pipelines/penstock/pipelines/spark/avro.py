"""Records in Avro as Spark reads them: each by the schema it was written with, all into the columns of the input.

A value is a zero byte, the id of its schema, and the record. To know that the record ends where the value does,
four bytes are put behind it, and the schema gets a field at its end that takes them: in a value that is cut, or
goes on behind its record, that field does not hold them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.ingestion.contracts import Field
from penstock.ingestion.contracts.schemas import record_name
from penstock.ingestion.contracts.types import avro_type, parse_type, type_in_spark
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.registry import Written
from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.plan.predicates import literal, quoted
from penstock.pipelines.plan.source import Column, Source, Tombstones, Topic
from penstock.pipelines.spark.tombstones import said_by_deletion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Schemas: TypeAlias = Callable[[str, Sequence[Field]], Written]
"""Says by which schemas a topic's records were written, as far as a reader with these fields can read them."""
Writers: TypeAlias = Mapping[str, Written]
"""The same as it is for a batch, by topic."""

_END = "_end"
_MARK = b"\xf0PEN"
_NOBODY = "none"
"""No value begins so: what stands for it gives the column its type while no schema is known."""


def no_registry(topic: str, _fields: Sequence[Field]) -> Written:
    """Stand where no registry is known: Avro cannot be read without."""
    raise RegistryError(f"{topic} is in Avro, which needs the registry of its schemas; name one")


def is_avro(source: Source) -> bool:
    """Whether the records of an input are in Avro."""
    return isinstance(source.origin, Topic) and source.origin.encoding == "avro"


def writers_of(sources: Sequence[Source], schemas: Schemas) -> Writers:
    """Ask for the schemas of every input in Avro."""
    return {topic_of(each): schemas(topic_of(each), fields_of(each)) for each in sources if is_avro(each)}


def fields_of(source: Source) -> list[Field]:
    """The fields of an input as a contract has them."""
    return [Field(each.name, type_in_spark(each.type), "", each.required) for each in source.columns]


def parsed(source: Source, writers: Writers) -> str:
    """SQL for a record: null for one by a schema that is not known, full of nulls for a broken one."""
    written = writers.get(topic_of(source), Written({})).schemas
    reader = _reader(source)
    by_id = {f"00{number:08X}": schema for number, schema in written.items()} or {_NOBODY: reader}
    options = f"map('avroSchema', {_marked(reader, optional=True)}, 'mode', 'PERMISSIVE')"
    payload = f"concat(substr(value, 6), X'{_MARK.hex()}')"
    cases = " ".join(
        f"WHEN '{head}' THEN from_avro({payload}, {_marked(schema, optional=False)}, {options})"
        for head, schema in by_id.items()
    )
    record = f"CASE hex(substr(value, 1, 5)) {cases} END"
    if source.tombstones is None:
        return record
    return f"CASE WHEN value IS NULL THEN {_deleted(source, source.tombstones)} ELSE {record} END"


def unreadable(source: Source, record: str) -> str:
    """The WHEN clauses that tell a record which could not be read; `record` is the column that `parsed` made."""
    texts = [
        unsound
        for each in source.columns
        if (unsound := _unsound(f"{record}.{quoted(each.name)}", each.type))
    ]
    broken = [f"{record}.{_END} IS NULL", f"{record}.{_END} <> X'{_MARK.hex()}'", *texts]
    return f" WHEN {record} IS NULL THEN 'wrong_schema' WHEN {' OR '.join(broken)} THEN 'malformed'"


def refuse_unknown(raw: "DataFrame", writers: Writers) -> None:
    """Refuse records of schemas that are not known while the registry does not answer: it may know them."""
    for topic, (schemas, trouble) in writers.items():
        if not trouble:
            continue
        known = ", ".join(f"'{number:08X}'" for number in schemas) or "''"
        head = "hex(substr(value, 2, 4))"
        others = raw.where(f"topic = '{topic}' AND substr(value, 1, 1) = X'00' AND {head} NOT IN ({known})")
        for row in others.selectExpr(f"conv({head}, 16, 10) AS id").limit(1).collect():
            raise RegistryError(
                f"{topic} has records of schema {row.id}, which is not known here yet, and {trouble}"
            )


def _reader(source: Source) -> dict[str, Any]:
    """The schema of an input: every field may be null, so that what is missing is told by its name."""
    fields = [{"name": each.name, "type": ["null", _avro(each)], "default": None} for each in source.columns]
    return {
        "type": "record",
        "name": record_name(topic_of(source)),
        "namespace": "penstock",
        "fields": fields,
    }


def _avro(column: Column) -> object:
    return avro_type(parse_type(type_in_spark(column.type)))


def _marked(schema: Mapping[str, Any], *, optional: bool) -> str:
    """A schema with the field for what is put behind the record, as a text of SQL."""
    kind = {"type": "fixed", "name": _END, "size": len(_MARK)}
    end = (
        {"name": _END, "type": ["null", kind], "default": None} if optional else {"name": _END, "type": kind}
    )
    return literal(json.dumps({**schema, "fields": [*schema["fields"], end]}))


def _deleted(source: Source, deleting: Tombstones) -> str:
    """The record that stands for one without a value."""
    said = said_by_deletion(source, deleting)
    fields = [
        f"{literal(each.name)}, CAST({said.get(each.name, 'NULL')} AS {each.type})" for each in source.columns
    ]
    return f"named_struct({', '.join(fields)}, '{_END}', X'{_MARK.hex()}')"


def _unsound(column: str, kind: str, depth: int = 0) -> str:
    """SQL that is true of text which is not UTF-8: Avro has no word about that, and whoever reads it breaks."""
    kind = kind.upper()
    if kind == "STRING":
        return f"NOT is_valid_utf8({column})"
    if not kind.startswith("ARRAY<"):
        return ""
    inner = _unsound(f"x{depth}", kind.removeprefix("ARRAY<").removesuffix(">"), depth + 1)
    return f"exists({column}, x{depth} -> {inner})" if inner else ""
