"""`penstock stream replay`, `plan-upgrade` and `upgrade`."""

from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.confirmation import confirm
from penstock.platform.cli.options import json_option, records_per_batch_option, stream_argument, yes_option
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.cli.steps import StepPrinter

if TYPE_CHECKING:
    from penstock.platform.services.replay import ReplayResult
    from penstock.platform.services.upgrades import UpgradePlan

REPLAY_EXAMPLES = format_examples(
    "penstock stream replay sensor_minute",
    "penstock stream replay sensor_minute --from archive",
    "penstock stream replay sensor_minute --from time:2026-01-31T12:00 --beside",
    "penstock stream replay sensor_minute --without sensors/0@4711",
)


@click.command(name="replay", short_help="Run a pipeline over its history again", epilog=REPLAY_EXAMPLES)
@stream_argument
@click.option(
    "--from",
    "start",
    default="topic",
    show_default=True,
    metavar="START",
    help="Start of the replay: topic (its earliest record), archive (then the topic), offset:N, "
    "offset:PARTITION=N,…, or time:2026-01-31T12:00 (broker time, UTC).",
)
@click.option(
    "--switch/--beside",
    default=True,
    help="Replace the stream's results, or keep the new ones beside them in runs/STREAM/NAME of the warehouse.",
)
@click.option(
    "--drop-earlier",
    is_flag=True,
    help="Accept that results of records before the start, or that the contract no longer reads, are lost.",
)
@click.option(
    "--name", default="", help="Name of the replay. Reuse the name to resume an interrupted replay."
)
@click.option(
    "--without",
    multiple=True,
    metavar="TOPIC/PARTITION@OFFSET",
    help="Leave out a record, such as one with a wrong clock, now and in later replays; it goes to quarantine.",
)
@records_per_batch_option
@json_option
def replay(
    stream: str,
    start: str,
    switch: bool,
    drop_earlier: bool,
    name: str,
    without: tuple[str, ...],
    records_per_batch: int | None,
    as_json: bool,
) -> None:
    """Run a pipeline over its history again, with its current definition.

    The stream keeps running during the replay. At the end, the stream is drained while the replay reads the last
    records. Then each table replaces its old results with the new ones in one commit, and the stream resumes. No
    record is counted twice. With --beside, the stream is not affected.
    """
    from dataclasses import asdict

    from penstock.platform.services.operator_actions import record_action
    from penstock.platform.services.replay import ReplayRequest
    from penstock.platform.services.replay import replay_stream as run

    settings = current_settings()
    request = ReplayRequest(stream, start, switch, drop_earlier, name, records_per_batch, without)
    with use_control_store(settings) as store, StepPrinter().step(f"replay {stream}") as report_progress:
        record_action(settings.home, "stream replay", stream, {"from": start, "beside": not switch})
        result = run(settings, store, request, report_progress)
    if as_json:
        print_json(asdict(result))
        return
    print_table(list(result.accounts), [list(result.accounts.values())])
    after_text = "" if result.batch is None else f"; the stream resumes after batch {result.batch}"
    click.echo(_describe_duration(result))
    click.echo(f"results: {result.tables}{after_text}")


def _describe_duration(result: "ReplayResult") -> str:
    """Return how long the replay took, beside what was estimated."""
    from penstock.platform.services.replay_estimate import format_seconds

    low, high = (
        format_seconds(seconds) for seconds in (result.estimate.seconds_low, result.estimate.seconds_high)
    )
    return (
        f"{result.accounts['read']:,} records in {result.seconds:.1f} s, estimated {low} to {high} from "
        f"{result.estimate.source}"
    )


_from_now = click.option(
    "--from-now",
    multiple=True,
    metavar="COLUMN",
    help="Accept that a new or changed column of open windows counts only records from now on.",
)
_start = click.option(
    "--from",
    "start",
    default="",
    metavar="START",
    help="Start of a replay, if the upgrade needs one. Default: the archive if it exists, otherwise the topic.",
)


@click.command(
    name="plan-upgrade",
    short_help="Show the upgrade plan and its cost",
    epilog=format_examples(
        "penstock stream plan-upgrade sensor_minute", "penstock stream plan-upgrade sensor_minute --json"
    ),
)
@stream_argument
@_from_now
@_start
@json_option
def plan_upgrade(stream: str, from_now: tuple[str, ...], start: str, as_json: bool) -> int:
    """Show what an upgrade of a stream to its current pipeline requires and costs.

    Changes nothing. The exit code is 1 if the stream cannot start with the current pipeline without an upgrade.
    """
    from penstock.engine.upgrade.upgrade_class import UpgradeClass
    from penstock.platform.services.upgrades import UpgradeRequest
    from penstock.platform.services.upgrades import plan_upgrade as assess_upgrade

    settings = current_settings()
    with use_control_store(settings) as store:
        assessed_plan = assess_upgrade(settings, store, UpgradeRequest(stream, from_now, start))
    if as_json:
        print_json(assessed_plan.as_json())
    else:
        _print_upgrade_plan(assessed_plan)
    return 1 if assessed_plan.upgrade_class > UpgradeClass.COMPATIBLE else 0


@click.command(
    name="upgrade",
    short_help="Upgrade a stream to its current pipeline",
    epilog=format_examples(
        "penstock stream upgrade sensor_minute", "penstock stream upgrade sensor_minute --from-now warmest"
    ),
)
@stream_argument
@_from_now
@_start
@yes_option
def upgrade(stream: str, from_now: tuple[str, ...], start: str, yes: bool) -> None:
    """Upgrade a stream to its current pipeline: with a restart, a state migration or a replay, as required."""
    from dataclasses import replace

    from penstock.engine.upgrade.upgrade_class import UpgradeClass
    from penstock.platform.services.operator_actions import record_action
    from penstock.platform.services.upgrades import UpgradeRequest
    from penstock.platform.services.upgrades import plan_upgrade as assess_upgrade
    from penstock.platform.services.upgrades import upgrade_stream as run

    settings = current_settings()
    request = UpgradeRequest(stream, from_now, start)
    with use_control_store(settings) as store:
        assessed_plan = assess_upgrade(settings, store, request)
        _print_upgrade_plan(assessed_plan)
        if assessed_plan.upgrade_class > UpgradeClass.COMPATIBLE and not yes:
            confirm("Apply this upgrade?")
        with StepPrinter().step(f"upgrade {stream}") as report_progress:
            record_action(
                settings.home, "stream upgrade", stream, {"class": str(assessed_plan.upgrade_class.name)}
            )
            # The file may change again while the user decides, so only what was shown is accepted.
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
    print_table(("change", "before", "after", "requires", ""), rows, empty="no changes")
    cost = upgrade_plan.cost
    click.echo(
        f"{upgrade_plan.stream}: {upgrade_plan.upgrade_class.label}: {upgrade_plan.upgrade_class.description}"
    )
    if upgrade_plan.upgrade_class.label == "migratable":
        click.echo(f"state to rewrite: {cost.windows:,} rows, {cost.state_bytes / 1e6:,.1f} MB")
    if upgrade_plan.upgrade_class.label == "replay":
        duration_text = f": {cost.replay}" if cost.replay is not None else ""
        click.echo(f"a replay from the {upgrade_plan.replay_start}{duration_text}")


HISTORY_COMMANDS = (replay, plan_upgrade, upgrade)
"""The commands that `penstock stream` adds from this module."""
