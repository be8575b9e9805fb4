"""`penstock maintain`: compact tables and delete expired files and history."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import json_option
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.cli.steps import StepPrinter

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from penstock.platform.settings import Settings

SECTION: Section = "Streams"


@click.command(
    name="maintain",
    short_help="Compact tables and delete expired files and history",
    epilog=format_examples("penstock maintain", "penstock maintain --dry-run", "penstock maintain --json"),
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; change nothing.")
@json_option
def command(dry_run: bool, as_json: bool) -> None:
    """Compact tables and delete expired files and history, while the streams keep running.

    Merges small files of tables. Deletes files that no recent table version uses, folders left by replays, rows
    of old batches, and old Dagster events and runs. The settings `maintenance.*` define the retention. Dagster
    runs the same maintenance on a schedule.
    """
    from penstock.core.clock import now_ms
    from penstock.platform.maintenance import run_maintenance

    settings = current_settings()
    with use_control_store(settings) as store, StepPrinter().step("maintenance") as report_progress:
        actions = run_maintenance(
            settings, store, _open_dagster_instance(settings), now_ms(), report_progress, dry_run=dry_run
        )
    if as_json:
        print_json([asdict(action) for action in actions])
    else:
        print_table(
            ("target", "action", "count"),
            [(action.target, action.action, action.count) for action in actions],
        )


def _open_dagster_instance(settings: "Settings") -> "DagsterInstance | None":
    """Open the Dagster instance in the home folder; None if it does not exist yet."""
    from penstock.platform.stack.dagster_home import dagster_home

    home = dagster_home(settings)
    if not (home / "dagster.yaml").exists():
        return None
    from dagster import DagsterInstance

    return DagsterInstance.from_config(str(home))
