"""`penstock state`: what a stream keeps between batches, by stage and key."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.cli.state_erase import erase, parse_key
from penstock.platform.cli.stream_arguments import stream_argument

if TYPE_CHECKING:
    from penstock.engine.batch.state_inspection import StageSnapshot


@click.group(name="state")
def command() -> None:
    """Look at what a stream keeps: open windows, and what functions remember; and have a key forgotten."""


command.add_command(erase)


_json = click.option("--json", "as_json", is_flag=True, help="Print for programs.")
_stage = click.option("--stage", help="Which stage; without it the first.")
_batch = click.option("--batch", type=int, help="After which batch; without it the newest.")
_key = click.option(
    "--key", multiple=True, metavar="FIELD=VALUE", help="Only a key; once for each of its fields."
)


@command.command(name="list", epilog=format_examples("penstock state list sensor_minute"))
@stream_argument
@_batch
@_json
def list_stages(stream: str, batch: int | None, as_json: bool) -> None:
    """List the stages of a stream, and how much each keeps."""
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
    click.echo(f"batches {available_batches[0]} to {available_batches[-1]} can be asked for")


@command.command(
    epilog=format_examples(
        "penstock state show sensor_minute --key device=device-0001",
        "penstock state show hashtags --stage hashtag_counts --limit 5 --json",
    )
)
@stream_argument
@_stage
@_batch
@_key
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="How many rows.")
@_json
def show(
    stream: str, stage: str | None, batch: int | None, key: Sequence[str], limit: int, as_json: bool
) -> None:
    """Show what is kept of windows or keys."""
    from penstock.engine.batch.state_inspection import decode_packed_columns, select_key_rows

    rows = decode_packed_columns(
        select_key_rows(_read_stage_snapshot(stream, stage, batch), parse_key(key)).slice(0, limit)
    )
    if as_json:
        print_json(rows.to_pylist())
    else:
        values = [tuple(row.values()) for row in rows.to_pylist()]
        print_table(tuple(rows.column_names), values, empty="nothing is kept")


@command.command(
    epilog=format_examples(
        "penstock state export sensor_minute --to state.parquet",
        "penstock state export sensor_minute --key device=device-0001 --to device.parquet",
    )
)
@stream_argument
@_stage
@_batch
@_key
@click.option(
    "--to", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The Parquet file to write."
)
def export(stream: str, stage: str | None, batch: int | None, key: Sequence[str], to: Path) -> None:
    """Write what a stage keeps, or what it keeps of a key, into a Parquet file."""
    import pyarrow.parquet as pq

    from penstock.engine.batch.state_inspection import decode_packed_columns, select_key_rows

    if not to.parent.is_dir():
        raise click.UsageError(f"there is no folder {to.parent} to write {to.name} into; make it first")
    rows = decode_packed_columns(select_key_rows(_read_stage_snapshot(stream, stage, batch), parse_key(key)))
    temp_path = to.with_name(f"{to.name}.partial")
    pq.write_table(rows, temp_path)
    temp_path.replace(to)
    click.echo(f"{rows.num_rows} rows in {to}")


def _find_stream_folder(stream: str) -> Path:
    from penstock.engine.stream_folders import resolve_stream_folder
    from penstock.platform.services.stream_catalog import list_stream_names
    from penstock.platform.services.stream_lifecycle import check_stream_exists

    folder = resolve_stream_folder(current_settings().home / "streams", stream)
    # What a pipeline kept that is no longer in the catalog can still be looked at.
    if not folder.exists():
        check_stream_exists(stream, list_stream_names())
    return folder


def _read_stage_snapshot(stream: str, stage: str | None, batch: int | None) -> "StageSnapshot":
    from penstock.engine.batch.state_inspection import read_state_at

    snapshots = read_state_at(_find_stream_folder(stream), batch)
    name = next(iter(snapshots)) if stage is None else stage
    if name not in snapshots:
        raise click.UsageError(f"{stream} has no stage {name!r}; there are: {', '.join(snapshots)}")
    return snapshots[name]
