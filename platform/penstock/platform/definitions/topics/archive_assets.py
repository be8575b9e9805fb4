"""Archives in Dagster: a stream and a table for each topic, and a check that the table is complete."""

from collections.abc import Iterator, Mapping, Sequence

from dagster import (
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetSpec,
    MetadataValue,
    TableColumn,
    TableSchema,
)

from penstock.engine.archive.archive_names import archive_name, ledger_path, records_path
from penstock.engine.archive.completeness_check import find_disagreements
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table
from penstock.engine.tables.table_documentation import document_table
from penstock.platform.definitions.asset_keys import archive_key, stream_key, topic_key
from penstock.platform.definitions.asset_specs import AssetContext, link_to_console
from penstock.platform.definitions.scheduled_checks import build_checks
from penstock.platform.definitions.streams.batch_sensor import ReportedStream

ARCHIVE_COMPLETE_CHECK = "archive_complete"
_ARCHIVE_COLUMN_TYPES = {
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestamp_type": "string",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct>",
    "batch_id": "bigint",
    "day": "date",
}


def build_archive_specs(topics: Mapping[str, str], asset_context: AssetContext) -> Iterator[AssetSpec]:
    """Yield the archive stream and the archive table of each topic; `topics` maps names to descriptions."""
    documentation = document_table("raw")
    archive_columns = [
        TableColumn(name, column_type, documentation.column_comments[name])
        for name, column_type in _ARCHIVE_COLUMN_TYPES.items()
    ]
    for topic, doc in topics.items():
        yield AssetSpec(
            stream_key(archive_name(topic)),
            deps=[topic_key(topic)],
            description=f"Archives the records of {topic}, once it is started.",
            group_name="streams",
            kinds={"python"},
            owners=[asset_context.owner],
            metadata=link_to_console(asset_context, f"streams/{archive_name(topic)}"),
        )
        yield AssetSpec(
            archive_key(topic),
            deps=[stream_key(archive_name(topic))],
            description=f"{documentation.description} {doc}",
            group_name="archives",
            kinds={"deltalake"},
            owners=[asset_context.owner],
            metadata={
                "dagster/column_schema": MetadataValue.table_schema(TableSchema(archive_columns)),
                "dagster/table_name": records_path(topic),
                **link_to_console(asset_context, f"tables/raw/{topic}"),
                "dagster/uri": f"{asset_context.warehouse}/{records_path(topic)}",
            },
        )


def reported_archive_stream(topic: str) -> ReportedStream:
    """Return the archive stream of a topic with the assets that its batches materialize."""
    stream = archive_name(topic)
    return ReportedStream(stream, (stream_key(stream), archive_key(topic)))


def build_archive_checks(topics: Sequence[str], warehouse: StoragePath) -> AssetChecksDefinition:
    """Build a check for each archive; it reads the offsets of the whole table."""
    specs = [
        AssetCheckSpec(
            ARCHIVE_COMPLETE_CHECK,
            asset=archive_key(topic),
            description="Every offset is archived exactly once, and each gap is explained.",
        )
        for topic in topics
    ]

    return build_checks(
        "archives", specs, lambda _context, key: _archive_result(key.asset_key.path[-1], warehouse)
    )


def _archive_result(topic: str, warehouse: StoragePath) -> AssetCheckResult:
    paths = (records_path(topic), ledger_path(topic))
    missing_paths = [path for path in paths if not is_delta_table(warehouse / path)]
    has_tables = len(missing_paths) < len(paths)
    missing_problems = [
        f"the table {path} is missing, although the rest of the archive exists" for path in missing_paths
    ]
    problems = missing_problems or find_disagreements(warehouse, topic) if has_tables else []
    return AssetCheckResult(
        passed=not problems,
        asset_key=archive_key(topic),
        check_name=ARCHIVE_COMPLETE_CHECK,
        severity=AssetCheckSeverity.ERROR,
        metadata={"problems": problems} if has_tables else {"state": "nothing is archived yet"},
    )
