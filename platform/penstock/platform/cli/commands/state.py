"""`penstock state`: inspect, export or erase the state of a stream."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.core.files import atomic_path
from penstock.core.names import explain_unknown_name
from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import json_option, stream_argument
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.cli.state_erase import erase, parse_key

if TYPE_CHECKING:
    from penstock.engine.batch.state_inspection import StageSnapshot

SECTION: Section = "Streams"


@click.group(
    name="state",
    short_help="Inspect, export or erase a stream's state",
    epilog=format_examples("penstock state list sensor_minute", "penstock state show sensor_minute"),
)
def command() -> None:
    """Inspect, export or erase a stream's state: open windows and the state of stateful functions."""


command.add_command(erase)


_stage = click.option("--stage", help="Stage to read. Default: the first.")
_batch = click.option("--batch", type=int, help="Batch after which to read the state. Default: the newest.")
_key = click.option(
    "--key", multiple=True, metavar="FIELD=VALUE", help="Only this key; repeat the option for each key field."
)


@command.command(
    name="list",
    short_help="List the stages and the size of their state",
    epilog=format_examples("penstock state list sensor_minute"),
)
@stream_argument
@_batch
@json_option
def list_stages(stream: str, batch: int | None, as_json: bool) -> None:
    """List the stages of a stream with the size of their state."""
    from penstock.engine.batch.state_inspection import list_available_batches, read_state_at

    directory = _find_stream_folder(stream)
    rows = [
        {
            "stage": snapshot.stage,
            "batch": snapshot.batch_id,
            "rows": snapshot.rows,
            "files": len(snapshot.runs),
            "bytes": snapshot.bytes,
        }
        for snapshot in read_state_at(directory, batch).values()
    ]
    if as_json:
        print_json(rows)
        return
    print_table(tuple(rows[0]), [tuple(row.values()) for row in rows])
    available_batches = list_available_batches(directory)
    click.echo(f"available batches: {available_batches[0]} to {available_batches[-1]}")


@command.command(
    short_help="Show the state of windows or keys",
    epilog=format_examples(
        "penstock state show sensor_minute --key device=device-0001",
        "penstock state show hashtags --stage hashtag_counts --limit 5 --json",
    ),
)
@stream_argument
@_stage
@_batch
@_key
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="Number of rows.")
@json_option
def show(
    stream: str, stage: str | None, batch: int | None, key: Sequence[str], limit: int, as_json: bool
) -> None:
    """Show the state of windows or keys. `export` writes all columns as the engine stores them."""
    from penstock.engine.batch.state_inspection import decode_packed_columns, select_key_rows
    from penstock.platform.cli.state_view import to_readable_rows

    snapshot = _read_stage_snapshot(stream, stage, batch)
    stored_rows = decode_packed_columns(select_key_rows(snapshot, parse_key(key)).slice(0, limit))
    columns, rows = to_readable_rows(stored_rows, snapshot.key_fields, as_json=as_json)
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table(columns, rows, empty="the state is empty")


@command.command(
    short_help="Write the state of a stage to a Parquet file",
    epilog=format_examples(
        "penstock state export sensor_minute --to state.parquet",
        "penstock state export sensor_minute --key device=device-0001 --to device.parquet",
    ),
)
@stream_argument
@_stage
@_batch
@_key
@click.option(
    "--to", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Parquet file to write."
)
def export(stream: str, stage: str | None, batch: int | None, key: Sequence[str], to: Path) -> None:
    """Write the state of a stage, or of one of its keys, to a Parquet file."""
    import pyarrow.parquet as pq

    from penstock.engine.batch.state_inspection import decode_packed_columns, select_key_rows

    if not to.parent.is_dir():
        raise click.UsageError(f"folder {to.parent} does not exist; create it, then export {to.name}")
    rows = decode_packed_columns(select_key_rows(_read_stage_snapshot(stream, stage, batch), parse_key(key)))
    with atomic_path(to) as partial:
        pq.write_table(rows, partial)
    click.echo(f"{rows.num_rows} rows written to {to}")


def _find_stream_folder(stream: str) -> Path:
    from penstock.engine.stream_folders import resolve_stream_folder
    from penstock.platform.services.stream_catalog import list_stream_names
    from penstock.platform.services.stream_lifecycle import check_stream_exists

    folder = resolve_stream_folder(current_settings().home / "streams", stream)
    # The state of a pipeline that was removed from the catalog stays readable.
    if not folder.exists():
        check_stream_exists(stream, list_stream_names())
    return folder


def _read_stage_snapshot(stream: str, stage: str | None, batch: int | None) -> "StageSnapshot":
    from penstock.engine.batch.state_inspection import read_state_at

    snapshots = read_state_at(_find_stream_folder(stream), batch)
    name = next(iter(snapshots)) if stage is None else stage
    if name not in snapshots:
        raise click.UsageError(explain_unknown_name(f"{stream} stage", name, snapshots))
    return snapshots[name]
