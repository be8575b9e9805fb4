"""What commands that remove something have in common: they show it, ask for the name, and record the action."""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from penstock.platform.cli.options import json_option
from penstock.platform.cli.output import print_json, print_table
from penstock.platform.cli.steps import StepPrinter

if TYPE_CHECKING:
    from penstock.core.progress import ProgressReporter
    from penstock.platform.services.removal import RemovalPlan
    from penstock.platform.settings import Settings

MB = 1_000_000
Command = Callable[..., Any]


@dataclass(frozen=True)
class RemovalOptions:
    """How a removal is confirmed and shown: the values of --yes NAME, --dry-run and --json."""

    confirmed: str | None
    dry_run: bool
    as_json: bool


def removal_options(command: Command) -> Command:
    """Add the options of a command that removes something; it gets them as `options: RemovalOptions`."""

    @wraps(command)
    def run(*, confirmed: str | None, dry_run: bool, as_json: bool, **arguments: Any) -> Any:
        return command(**arguments, options=RemovalOptions(confirmed, dry_run, as_json))

    options = (
        click.option("--yes", "confirmed", metavar="NAME", help="Do not ask; repeat the name to confirm."),
        click.option("--dry-run", is_flag=True, help="Show what would be removed; remove nothing."),
        json_option,
    )
    decorated: Command = run
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def run_removal(
    settings: "Settings",
    plan: "RemovalPlan",
    action: str,
    name: str,
    remove: "Callable[[ProgressReporter], None]",
    options: RemovalOptions,
) -> None:
    """Show a plan, refuse or confirm it, carry it out, and record who did it before and after."""
    from penstock.platform.services.operator_actions import record_action

    if options.as_json and (options.dry_run or plan.blockers):
        print_json({**asdict(plan), "removed": False})
    elif not options.as_json:
        _print_plan(plan)
    plan.refuse_if_blocked()
    if options.dry_run:
        return
    confirm_name(f"This cannot be undone. Type {name} to remove it", name, options.confirmed)
    details = {"items": [asdict(item) for item in plan.items]}
    record_action(settings.home, action, name, {**details, "state": "started"})
    with StepPrinter().step(f"{action} {name}") as report_progress:
        remove(report_progress)
    record_action(settings.home, action, name, {"state": "done"})
    if options.as_json:
        print_json({**asdict(plan), "removed": True})


def confirm_name(question: str, name: str, confirmed: str | None) -> None:
    """Ask for a name, and end the command unless it is repeated exactly; `confirmed` answers without a terminal."""
    if confirmed is None:
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"{question}. There is no terminal to answer on, so nothing was changed. Repeat with --yes {name}"
            )
        confirmed = click.prompt(question, default="", show_default=False)
    if confirmed != name:
        raise click.UsageError(f"{confirmed!r} is not {name!r}; nothing was changed")


def _print_plan(plan: "RemovalPlan") -> None:
    rows = [
        (item.kind, item.name, "" if item.rows is None else f"{item.rows:,}", _format_size(item.size_bytes))
        for item in plan.items
    ]
    print_table(("removes", "name", "rows", "size"), rows)
    for remark in plan.remarks:
        click.echo(f"  {remark}")


def _format_size(size_bytes: int | None) -> str:
    if size_bytes is None:
        return ""
    return f"{size_bytes / MB:,.1f} MB" if size_bytes >= MB else f"{size_bytes / 1000:,.1f} kB"
