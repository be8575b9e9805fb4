"""`penstock actions`: show who did what in this installation, and when."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import json_option
from penstock.platform.cli.output import format_examples, print_json, print_table

if TYPE_CHECKING:
    from penstock.platform.services.operator_actions import OperatorAction

SECTION: Section = "Local stack"


@click.command(
    name="actions",
    short_help="Show who dropped, claimed or stopped what, and when",
    epilog=format_examples("penstock actions", "penstock actions --target orders_minute --json"),
)
@click.option("--target", help="Show the actions on this stream, table or topic only.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="Number of actions.")
@json_option
def command(target: str | None, limit: int, as_json: bool) -> None:
    """Show the newest actions of operators, the newest last."""
    from penstock.platform.services.operator_actions import read_actions

    actions = [action for action in read_actions(current_settings().home) if target in (None, action.target)][
        -limit:
    ]
    if as_json:
        print_json([msgspec.to_builtins(action) for action in actions])
    else:
        columns = ("time (UTC)", "action", "target", "by", "from", "")
        print_table(columns, [_to_row(action) for action in actions], empty="no action was recorded yet")


def _to_row(action: "OperatorAction") -> tuple[object, ...]:
    at = datetime.fromtimestamp(action.at_ms / 1000, UTC)
    details = ", ".join(f"{name}: {text}" for name, text in action.details.items() if name != "items")
    origin = f"{action.origin} on {action.host}"
    return f"{at:%Y-%m-%d %H:%M:%S}", action.action, action.target, action.user, origin, details
