"""`penstock stream repair`: let a stream resume whose files do not fit together."""

from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.confirmation import confirm
from penstock.platform.cli.options import json_option, stream_argument, yes_option
from penstock.platform.cli.output import format_examples, print_json

if TYPE_CHECKING:
    from penstock.engine.repair.repair_plan import RepairPlan


@click.command(
    short_help="Let a stream resume after damage",
    epilog=format_examples(
        "penstock stream repair sensor_minute --dry-run", "penstock stream repair sensor_minute"
    ),
)
@stream_argument
@click.option(
    "--dry-run", is_flag=True, help="Show what is wrong and what would be done, and change nothing."
)
@yes_option
@json_option
def repair(stream: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Let a stream resume whose journal, state, checkpoint or tables do not fit together.

    Use it after a power cut without synced writes, a damaged disk, or a restored home. The stream goes back to its
    newest batch that is whole: each table is restored to that batch in one commit, and the records of these
    batches are read again from the topic. Damaged files are kept in the folder `damaged` of the journal. The
    command refuses while the stream runs. `penstock actions` shows who repaired what.
    """
    from penstock.platform.services.operator_actions import record_action
    from penstock.platform.services.stream_repair import (
        plan_stream_repair,
        refuse_blocked_repair,
        repair_stream,
    )

    settings = current_settings()
    plan = plan_stream_repair(settings, stream)
    if as_json:
        print_json(_summarize(plan))
    else:
        _print_plan(stream, plan)
    if not plan.problems:
        return
    refuse_blocked_repair(stream, plan)
    if dry_run:
        return
    if not yes:
        confirm(f"Repair {stream}?")
    with use_control_store(settings) as store:
        record_action(settings.home, "stream repair", stream, _summarize(plan))
        outcome = repair_stream(settings, store, stream)
    if not as_json:
        click.echo(f"repaired with batch {outcome.batch_id}. Start it: `penstock stream start {stream}`")


def _print_plan(stream: str, plan: "RepairPlan") -> None:
    if not plan.problems:
        click.echo(
            f"{stream}: journal, state, checkpoint and tables fit together; there is nothing to repair"
        )
        return
    click.echo("found:")
    for problem in plan.problems:
        click.echo(f"  {problem}")
    if plan.last_whole is not None:
        click.echo(f"a repair goes back to batch {plan.last_whole.batch_id}:")
        for path, change in plan.changes.items():
            click.echo(f"  {path}: {len(change.removes)} files removed, {len(change.adds)} files added")
        for entry in plan.entries_to_move:
            click.echo(f"  {entry.name}: moved out of the journal")
        for name, end in sorted(plan.last_whole.ends.items()):
            click.echo(f"  {name}: read again from offset {end}")


def _summarize(plan: "RepairPlan") -> dict[str, object]:
    return {
        "problems": list(plan.problems),
        "blockers": list(plan.blockers),
        "back_to_batch": None if plan.last_whole is None else plan.last_whole.batch_id,
        "tables": sorted(plan.changes),
        "entries_move_out": [path.name for path in plan.entries_to_move],
    }
