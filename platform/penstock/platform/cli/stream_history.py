"""`penstock stream replay`, `plan-upgrade` and `upgrade`: history run again, a change in force."""

from typing import TYPE_CHECKING

import click

from penstock.platform.cli.choices import stream_argument
from penstock.platform.cli.context import control_store, current_settings
from penstock.platform.cli.output import Steps, example, print_json, print_table

if TYPE_CHECKING:
    from penstock.platform.upgrades import Planned

REPLAY = example(
    "penstock stream replay sensor_minute",
    "penstock stream replay sensor_minute --from archive",
    "penstock stream replay sensor_minute --from time:2026-01-31T12:00 --beside",
)


@click.command(name="replay", epilog=REPLAY)
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

    from penstock.platform.replay import Order
    from penstock.platform.replay import replay as run

    settings = current_settings()
    order = Order(stream, start, switch, drop_earlier, name, records_per_batch)
    with control_store(settings) as store, Steps().step(f"{stream} is replayed") as tell:
        done = run(settings, store, order, tell)
    if as_json:
        print_json(asdict(done))
        return
    print_table(list(done.accounts), [list(done.accounts.values())])
    after = "" if done.batch is None else f"; the stream goes on after batch {done.batch}"
    click.echo(f"the results are in {done.tables}{after}")


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
    epilog=example(
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
    from penstock.pipelines.upgrade.classes import Class
    from penstock.platform.upgrades import UpgradeOrder
    from penstock.platform.upgrades import plan_upgrade as look

    settings = current_settings()
    with control_store(settings) as store:
        planned = look(settings, store, UpgradeOrder(stream, from_now, start))
    if as_json:
        print_json(planned.as_json())
    else:
        _show_upgrade(planned)
    return 1 if planned.takes > Class.COMPATIBLE else 0


@click.command(
    name="upgrade",
    epilog=example(
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

    from penstock.pipelines.upgrade.classes import Class
    from penstock.platform.upgrades import UpgradeOrder
    from penstock.platform.upgrades import plan_upgrade as look
    from penstock.platform.upgrades import upgrade as run

    settings = current_settings()
    order = UpgradeOrder(stream, from_now, start)
    with control_store(settings) as store:
        planned = look(settings, store, order)
        _show_upgrade(planned)
        if planned.takes > Class.COMPATIBLE and not yes:
            click.confirm("Do it?", abort=True)
        with Steps().step(f"{stream} goes by its new definition") as tell:
            # The file may be changed again while somebody thinks it over: what was shown is what is accepted.
            run(settings, store, replace(order, accept=max(planned.takes, Class.COMPATIBLE)), tell)


def _show_upgrade(planned: "Planned") -> None:
    found = planned.upgrade
    rows = [(d.what, d.before, d.after, d.takes.word, d.note) for d in (found.differences if found else ())]
    print_table(("what", "was", "is", "takes", ""), rows, empty="nothing differs")
    cost = planned.cost
    click.echo(f"{planned.stream}: {planned.takes.word}: {planned.takes.says}")
    if planned.takes.word == "migratable":
        click.echo(f"to rewrite: {cost.windows:,} rows of state, {cost.state_bytes / 1e6:,.1f} MB")
    if planned.takes.word == "replay":
        pace = f", about {cost.seconds:,.0f} s by the stream's own pace" if cost.seconds is not None else ""
        click.echo(f"to read, from the {planned.start}: up to {cost.records:,} records{pace}")


HISTORY = (replay, plan_upgrade, upgrade)
"""What `penstock stream` has of these."""
