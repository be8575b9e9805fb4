"""`penstock topics`: the broker's topics, compared with what the contracts declare, and made so."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import example, print_json, print_table

if TYPE_CHECKING:
    from penstock.ingestion.topics import Change, TopicPlan


@click.group(name="topics")
def command() -> None:
    """Topics as code: see what would change, then change it."""


_environment = click.option(
    "--environment",
    help="Whose layout to take from the contracts; that of the setting kafka.layout without it.",
)
_destroy = click.option(
    "--allow-destroy",
    "destroy",
    multiple=True,
    metavar="TOPIC",
    help="May lose this topic's records; repeatable.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print for programs.")


@command.command(
    epilog=example("penstock topics plan", "penstock topics plan --environment production --json")
)
@_environment
@_destroy
@_json
def plan(environment: str | None, destroy: tuple[str, ...], as_json: bool) -> int:
    """Show what would be changed; ends with 1 when anything would be."""
    found = _plan(environment, destroy)
    _show(found.changes, found.undeclared, as_json, "the topics are as declared")
    return 1 if found.changes else 0


@command.command(epilog=example("penstock topics apply", "penstock topics apply --allow-destroy old_topic"))
@_environment
@_destroy
@_json
def apply(environment: str | None, destroy: tuple[str, ...], as_json: bool) -> None:
    """Make the topics as declared. What would lose records is refused unless it is allowed by name."""
    from penstock.ingestion.topics import apply_plan

    found = _plan(environment, destroy)
    kafka = current_settings().kafka
    done = apply_plan(kafka.servers, found, destroy, client=kafka.client("topics"))
    _show(done, found.undeclared, as_json, "nothing to do: the topics are as declared")


def _plan(environment: str | None, destroy: tuple[str, ...]) -> "TopicPlan":
    from penstock.ingestion.contracts import contracts
    from penstock.ingestion.topics import plan_for

    kafka = current_settings().kafka
    layout = environment or kafka.layout
    return plan_for(kafka.servers, contracts(), layout, destroy, client=kafka.client("topics"))


def _show(changes: "tuple[Change, ...]", undeclared: tuple[str, ...], as_json: bool, none: str) -> None:
    if as_json:
        print_json({"changes": [asdict(change) for change in changes], "undeclared": undeclared})
        return
    rows = [(change.action, change.topic, _detail(change), change.destroys or "") for change in changes]
    print_table(("action", "topic", "change", "destroys"), rows, empty=none)
    if undeclared:
        click.echo(f"not declared, left alone: {', '.join(undeclared)}")


def _detail(change: "Change") -> str:
    if change.action == "create" and change.after:
        return f"{change.after.partitions} partitions"
    return ", ".join(f"{name}: {before} -> {after}" for name, before, after in change.differences)
