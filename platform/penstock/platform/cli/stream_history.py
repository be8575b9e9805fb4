"""`penstock stream replay`, `plan-upgrade` and `upgrade`: history run again, a change in force."""

from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.output import StepPrinter, format_examples, print_json, print_table
from penstock.platform.cli.stream_arguments import stream_argument

if TYPE_CHECKING:
    from penstock.platform.services.upgrades import UpgradePlan

REPLAY_EXAMPLES = format_examples(
    "penstock stream replay sensor_minute",
    "penstock stream replay sensor_minute --from archive",
    "penstock stream replay sensor_minute --from time:2026-01-31T12:00 --beside",
)


@click.command(name="replay", epilog=REPLAY_EXAMPLES)
@stream_argument
@click.option(
    "--from",
    "start",
    default="topic",
    show_default=True,
    metavar="PLACE",
    help="topic (as far back as it goes), archive (and the topic after it), offset:N, offset:PARTITION=N,…, or "
    "time:2026-01-31T12:00 in UTC, when records reached the broker.",
)
@click.option(
    "--switch/--beside",
    default=True,
    help="Put the results in the place of the stream's, or leave them in runs/STREAM/NAME of the warehouse.",
)
@click.option(
    "--drop-earlier", is_flag=True, help="Accept that the tables hold nothing of records before the start."
)
@click.option("--name", default="", help="The replay's name; one that was cut off goes on under its name.")
@click.option(
    "--records-per-batch", type=click.IntRange(min=1), help="Cut the history into batches of about so many."
)
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def replay(
    stream: str,
    start: str,
    switch: bool,
    drop_earlier: bool,
    name: str,
    records_per_batch: int | None,
    as_json: bool,
) -> None:
    """Run a pipeline over its history again, as it is written now.

    The stream goes on meanwhile. At the end it is drained for as long as the last records take; each table then
    takes the new results in place of the old in one commit, and the stream goes on from there. Nothing is counted
    twice. With --beside the stream is left alone.
    """
    from dataclasses import asdict

    from penstock.platform.services.replay import ReplayRequest
    from penstock.platform.services.replay import replay_stream as run

    settings = current_settings()
    request = ReplayRequest(stream, start, switch, drop_earlier, name, records_per_batch)
    with use_control_store(settings) as store, StepPrinter().step(f"{stream} is replayed") as report_progress:
        result = run(settings, store, request, report_progress)
    if as_json:
        print_json(asdict(result))
        return
    print_table(list(result.accounts), [list(result.accounts.values())])
    after_text = "" if result.batch is None else f"; the stream goes on after batch {result.batch}"
    click.echo(f"the results are in {result.tables}{after_text}")


_from_now = click.option(
    "--from-now",
    multiple=True,
    metavar="COLUMN",
    help="Declare that a new or changed column may count only what comes from now on, in windows that are open.",
)
_start = click.option(
    "--from",
    "start",
    default="",
    metavar="PLACE",
    help="Where a replay begins, where it takes one; without it the archive if there is one, else the topic.",
)


@click.command(
    name="plan-upgrade",
    epilog=format_examples(
        "penstock stream plan-upgrade sensor_minute", "penstock stream plan-upgrade sensor_minute --json"
    ),
)
@stream_argument
@_from_now
@_start
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def plan_upgrade(stream: str, from_now: tuple[str, ...], start: str, as_json: bool) -> int:
    """Show what it takes, and what it costs, to have a stream go by its pipeline as it is written now.

    Nothing is changed. Ends with 1 where the stream would not start with it by itself.
    """
    from penstock.engine.upgrade.upgrade_class import UpgradeClass
    from penstock.platform.services.upgrades import UpgradeRequest
    from penstock.platform.services.upgrades import plan_upgrade as look

    settings = current_settings()
    with use_control_store(settings) as store:
        assessed_plan = look(settings, store, UpgradeRequest(stream, from_now, start))
    if as_json:
        print_json(assessed_plan.as_json())
    else:
        _print_upgrade_plan(assessed_plan)
    return 1 if assessed_plan.upgrade_class > UpgradeClass.COMPATIBLE else 0


@click.command(
    name="upgrade",
    epilog=format_examples(
        "penstock stream upgrade sensor_minute", "penstock stream upgrade sensor_minute --from-now warmest"
    ),
)
@stream_argument
@_from_now
@_start
@click.option("--yes", is_flag=True, help="Do not ask.")
def upgrade(stream: str, from_now: tuple[str, ...], start: str, yes: bool) -> None:
    """Have a stream go by its pipeline as it is written now, by what that takes: a restart, or more."""
    from dataclasses import replace

    from penstock.engine.upgrade.upgrade_class import UpgradeClass
    from penstock.platform.services.upgrades import UpgradeRequest
    from penstock.platform.services.upgrades import plan_upgrade as look
    from penstock.platform.services.upgrades import upgrade_stream as run

    settings = current_settings()
    request = UpgradeRequest(stream, from_now, start)
    with use_control_store(settings) as store:
        assessed_plan = look(settings, store, request)
        _print_upgrade_plan(assessed_plan)
        if assessed_plan.upgrade_class > UpgradeClass.COMPATIBLE and not yes:
            click.confirm("Do it?", abort=True)
        with StepPrinter().step(f"{stream} goes by its new definition") as report_progress:
            # The file may be changed again while somebody thinks it over: what was shown is what is accepted.
            run(
                settings,
                store,
                replace(request, accept=max(assessed_plan.upgrade_class, UpgradeClass.COMPATIBLE)),
                report_progress,
            )


def _print_upgrade_plan(upgrade_plan: "UpgradePlan") -> None:
    plan_changes = upgrade_plan.plan_changes
    rows = [
        (
            difference.subject,
            difference.before,
            difference.after,
            difference.upgrade_class.label,
            difference.note,
        )
        for difference in (plan_changes.differences if plan_changes else ())
    ]
    print_table(("what", "was", "is", "takes", ""), rows, empty="nothing differs")
    cost = upgrade_plan.cost
    click.echo(
        f"{upgrade_plan.stream}: {upgrade_plan.upgrade_class.label}: {upgrade_plan.upgrade_class.description}"
    )
    if upgrade_plan.upgrade_class.label == "migratable":
        click.echo(f"to rewrite: {cost.windows:,} rows of state, {cost.state_bytes / 1e6:,.1f} MB")
    if upgrade_plan.upgrade_class.label == "replay":
        duration_text = (
            f", about {cost.estimated_seconds:,.0f} s by the stream's own pace"
            if cost.estimated_seconds is not None
            else ""
        )
        click.echo(
            f"to read, from the {upgrade_plan.replay_start}: up to {cost.records:,} records{duration_text}"
        )


HISTORY_COMMANDS = (replay, plan_upgrade, upgrade)
"""What `penstock stream` has of these."""
