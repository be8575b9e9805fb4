"""`penstock maintain`: merge small files, and forget what nobody asks for any more."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.context import control_store, current_settings
from penstock.platform.cli.output import Steps, example, print_json, print_table

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from penstock.platform.settings import Settings


@click.command(
    name="maintain",
    epilog=example("penstock maintain", "penstock maintain --dry-run", "penstock maintain --json"),
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(dry_run: bool, as_json: bool) -> None:
    """Keep a platform fit to run for months, beside the streams that run.

    Small files of tables become few; files that no version of the last days names, folders that replays left, rows
    of old batches, and old events and runs of Dagster go. The settings `maintenance.…` say what is old. Dagster
    does the same by a schedule.
    """
    from penstock.platform.clock import now_ms
    from penstock.platform.maintenance import maintain

    settings = current_settings()
    with control_store(settings) as store, Steps().step("maintenance") as tell:
        done = maintain(settings, store, _instance(settings), now_ms(), tell, dry_run=dry_run)
    if as_json:
        print_json([asdict(each) for each in done])
    else:
        print_table(("where", "what", "count"), [(each.where, each.what, each.count) for each in done])


def _instance(settings: "Settings") -> "DagsterInstance | None":
    """Dagster's instance in the home folder; None where there is none yet."""
    from penstock.platform.stack.dagster_home import dagster_home

    home = dagster_home(settings)
    if not (home / "dagster.yaml").exists():
        return None
    from dagster import DagsterInstance

    return DagsterInstance.from_config(str(home))
