"""`penstock maintain`: merge small files, and forget what nobody asks for any more."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.output import StepPrinter, format_examples, print_json, print_table

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from penstock.platform.settings import Settings


@click.command(
    name="maintain",
    epilog=format_examples("penstock maintain", "penstock maintain --dry-run", "penstock maintain --json"),
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(dry_run: bool, as_json: bool) -> None:
    """Keep a platform fit to run for months, beside the streams that run.

    Small files of tables become few; files that no version of the last days names, folders that replays left, rows
    of old batches, and old events and runs of Dagster go. The settings `maintenance.…` say what is old. Dagster
    does the same by a schedule.
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
            ("where", "what", "count"), [(action.target, action.action, action.count) for action in actions]
        )


def _open_dagster_instance(settings: "Settings") -> "DagsterInstance | None":
    """Dagster's instance in the home folder; None where there is none yet."""
    from penstock.platform.stack.dagster_home import dagster_home

    home = dagster_home(settings)
    if not (home / "dagster.yaml").exists():
        return None
    from dagster import DagsterInstance

    return DagsterInstance.from_config(str(home))
