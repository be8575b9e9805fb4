"""The schemas that the records of a batch were written with, from the registry."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.parse.record_parser import WriterSchemas, find_source_format
from penstock.engine.spark.parse.wire_columns import find_column_type
from penstock.ingestion.contracts import ContractField
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.registry import ReadableSchemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SchemaLookup: TypeAlias = Callable[[str, Sequence[ContractField], str], ReadableSchemas]
"""Returns the schemas of a topic that a reader with these fields can read, for records in this encoding."""


def refuse_without_registry(topic: str, _fields: Sequence[ContractField], encoding: str) -> ReadableSchemas:
    """Raise RegistryError: without a schema registry, the records cannot be read."""
    raise RegistryError(
        f"{topic} has the encoding {encoding}, which needs a schema registry. Configure the registry"
    )


def load_writer_schemas(sources: Sequence[PlanSource], schema_lookup: SchemaLookup) -> WriterSchemas:
    """Return the writer schemas of every input whose records name one."""
    return {
        topic_of(source): schema_lookup(topic_of(source), contract_fields(source), source.encoding)
        for source in sources
        if find_source_format(source).has_writer_schemas
    }


def contract_fields(source: PlanSource) -> list[ContractField]:
    """Return the fields of an input as fields of a contract."""
    return [
        ContractField(column.name, str(find_column_type(column)), "", column.required)
        for column in source.record_columns
    ]


def refuse_unknown_schemas(raw: "DataFrame", writer_schemas: WriterSchemas) -> None:
    """Raise RegistryError for records of unknown schemas while the registry is unavailable: it may know them."""
    for topic, (schemas, registry_error) in writer_schemas.items():
        if not registry_error:
            continue
        known_ids = ", ".join(f"'{number:08X}'" for number in schemas) or "''"
        head = "hex(substr(value, 2, 4))"
        unknown_records = raw.where(
            f"topic = '{topic}' AND substr(value, 1, 1) = X'00' AND {head} NOT IN ({known_ids})"
        )
        for row in unknown_records.selectExpr(f"conv({head}, 16, 10) AS id").limit(1).collect():
            raise RegistryError(
                f"{topic} has records of schema {row.id}, which is not cached. {registry_error}"
            )
