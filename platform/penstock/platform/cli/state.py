"""`penstock state`: what a stream keeps between batches, by stage and key."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.choices import stream_argument
from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import example, print_json, print_table
from penstock.platform.cli.state_erase import erase, key_of

if TYPE_CHECKING:
    from penstock.pipelines.batch.inspecting import KeptState


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


@command.command(name="list", epilog=example("penstock state list sensor_minute"))
@stream_argument
@_batch
@_json
def list_stages(stream: str, batch: int | None, as_json: bool) -> None:
    """List the stages of a stream, and how much each keeps."""
    from penstock.pipelines.batch.inspecting import batches, state_at

    directory = _directory(stream)
    rows = [
        {
            "stage": kept.stage,
            "batch": kept.batch_id,
            "rows": kept.rows,
            "files": len(kept.runs),
            "bytes": kept.bytes,
        }
        for kept in state_at(directory, batch).values()
    ]
    if as_json:
        print_json(rows)
        return
    print_table(tuple(rows[0]), [tuple(row.values()) for row in rows])
    reach = batches(directory)
    click.echo(f"batches {reach[0]} to {reach[-1]} can be asked for")


@command.command(
    epilog=example(
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
    from penstock.pipelines.batch.inspecting import of_key, unpacked

    rows = unpacked(of_key(_kept(stream, stage, batch), key_of(key)).slice(0, limit))
    if as_json:
        print_json(rows.to_pylist())
    else:
        values = [tuple(row.values()) for row in rows.to_pylist()]
        print_table(tuple(rows.column_names), values, empty="nothing is kept")


@command.command(
    epilog=example(
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

    from penstock.pipelines.batch.inspecting import of_key, unpacked

    if not to.parent.is_dir():
        raise click.UsageError(f"there is no folder {to.parent} to write {to.name} into; make it first")
    rows = unpacked(of_key(_kept(stream, stage, batch), key_of(key)))
    partial = to.with_name(f"{to.name}.partial")
    pq.write_table(rows, partial)
    partial.replace(to)
    click.echo(f"{rows.num_rows} rows in {to}")


def _directory(stream: str) -> Path:
    from penstock.pipelines.host.folders import folder_of_stream
    from penstock.platform.lifecycle import check_known
    from penstock.platform.streams import stream_names

    folder = folder_of_stream(current_settings().home / "streams", stream)
    # What a pipeline kept that is no longer in the catalog can still be looked at.
    if not folder.exists():
        check_known(stream, stream_names())
    return folder


def _kept(stream: str, stage: str | None, batch: int | None) -> "KeptState":
    from penstock.pipelines.batch.inspecting import state_at

    states = state_at(_directory(stream), batch)
    name = next(iter(states)) if stage is None else stage
    if name not in states:
        raise click.UsageError(f"{stream} has no stage {name!r}; there are: {', '.join(states)}")
    return states[name]
