"""Archives in Dagster: a stream and a table for each topic, and a check that the table holds every offset once."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetSpec,
    MetadataValue,
    TableColumn,
    TableSchema,
    multi_asset_check,
)

from penstock.pipelines.archive.check import disagreements
from penstock.pipelines.archive.names import archive_of, ledger_path, records_path
from penstock.pipelines.store import Place
from penstock.pipelines.store.files import is_table
from penstock.platform.definitions.assets import Surroundings
from penstock.platform.definitions.names import raw_key, stream_key, topic_key
from penstock.platform.definitions.scheduled import guarded, stays
from penstock.platform.definitions.sensor import Reported

CHECK = "every_offset_once"
_COLUMNS = (
    ("partition", "int", "the partition of the topic"),
    ("offset", "bigint", "the record's offset in it"),
    ("timestamp", "timestamp", "the broker's timestamp"),
    ("timestamp_type", "string", "create, or append"),
    ("key", "binary", "the key, byte for byte"),
    ("value", "binary", "the value, byte for byte; null where the record has none"),
    ("headers", "array<struct>", "name and value of each header, in order"),
    ("batch_id", "bigint", "the batch that took it"),
    ("day", "date", "the day on which it was taken"),
)


def archive_assets(topics: Mapping[str, str], around: Surroundings) -> Iterator[AssetSpec]:
    """For each topic the stream that archives it, and the table; each comes with what its records are."""
    for topic, doc in topics.items():
        yield AssetSpec(
            stream_key(archive_of(topic)),
            deps=[topic_key(topic)],
            description=f"Takes {topic} into its archive. It runs once it is started.",
            group_name="streams",
            kinds={"python"},
            owners=[around.owner],
        )
        yield AssetSpec(
            raw_key(topic),
            deps=[stream_key(archive_of(topic))],
            description=f"Every record of {topic} as the broker has it. {doc}",
            group_name="archives",
            kinds={"deltalake"},
            owners=[around.owner],
            metadata={
                "dagster/column_schema": MetadataValue.table_schema(
                    TableSchema([TableColumn(*column) for column in _COLUMNS])
                ),
                "dagster/table_name": records_path(topic),
                "dagster/uri": f"{around.warehouse}/{records_path(topic)}",
            },
        )


def reported_archive(topic: str) -> Reported:
    """What the batches of an archive materialize."""
    name = archive_of(topic)
    return Reported(name, (stream_key(name), raw_key(topic)))


def archive_checks(topics: Sequence[str], warehouse: Place) -> AssetChecksDefinition:
    """A check for each archive; it reads the addresses of the whole table."""
    specs = [
        AssetCheckSpec(CHECK, asset=raw_key(topic), description="Every offset once, each gap explained.")
        for topic in topics
    ]

    @multi_asset_check(name="archives", specs=specs, can_subset=True)
    @stays
    def check(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        for key in context.selected_asset_check_keys:
            yield guarded(key, partial(_checked, key.asset_key.path[-1], warehouse))

    return check


def _checked(topic: str, warehouse: Place) -> AssetCheckResult:
    paths = (records_path(topic), ledger_path(topic))
    gone = [path for path in paths if not is_table(warehouse / path)]
    there = len(gone) < len(paths)
    lost = [f"there is no table {path}, and the rest of the archive is there" for path in gone]
    wrong = lost or disagreements(warehouse, topic) if there else []
    return AssetCheckResult(
        passed=not wrong,
        asset_key=raw_key(topic),
        check_name=CHECK,
        severity=AssetCheckSeverity.ERROR,
        metadata={"found": wrong} if there else {"state": "nothing was archived yet"},
    )
