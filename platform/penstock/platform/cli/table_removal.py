"""`penstock table drop` and `penstock table claim`: remove a table, or hand it over to a stream."""

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.options import complete_names, list_streams
from penstock.platform.cli.output import format_examples
from penstock.platform.cli.removal_view import RemovalOptions, confirm_name, removal_options, run_removal


def parse_table_name(name: str) -> tuple[str | None, str]:
    """Return the kind and the name of a table; `latest/orders` has both."""
    kind, slash, table = name.rpartition("/")
    return (kind, table) if slash else (None, name)


@click.command(
    short_help="Remove a table that no stream writes",
    epilog=format_examples(
        "penstock table drop latest/orders_minute --dry-run",
        "penstock table drop latest/orders_minute --yes latest/orders_minute",
    ),
)
@click.argument("name")
@removal_options
def drop(name: str, options: RemovalOptions) -> None:
    """Remove a table with all its versions. NAME is KIND/TABLE, or TABLE if there is only one kind.

    The command refuses a table that a pipeline or a stream with state writes or looks up.
    """
    from penstock.platform.services.table_drop import drop_table, plan_table_drop

    settings = current_settings()
    kind, table = parse_table_name(name)
    run_removal(
        settings,
        plan_table_drop(settings, table, kind),
        "table drop",
        name,
        lambda report_progress: drop_table(settings, table, kind, report_progress),
        options,
    )


@click.command(
    short_help="Hand a table over to a stream",
    epilog=format_examples(
        "penstock table claim latest/orders_minute --stream orders_by_minute",
        "penstock table claim latest/orders_minute --stream orders_by_minute --yes latest/orders_minute",
    ),
)
@click.argument("name")
@click.option(
    "--stream", required=True, shell_complete=complete_names(list_streams), help="The owner from now on."
)
@click.option("--yes", "confirmed", metavar="NAME", help="Do not ask; repeat the name to confirm.")
def claim(name: str, stream: str, confirmed: str | None) -> None:
    """Make a stream of this installation the owner of a table. The former owner can no longer write it.

    Rows of the former owner stay in the table. To replace them, replay the stream afterwards.
    """
    from penstock.platform.services.operator_actions import record_action
    from penstock.platform.services.table_drop import hand_over, plan_handover

    settings = current_settings()
    kind, table = parse_table_name(name)
    with use_control_store(settings) as store:
        handover = plan_handover(settings, store, table, kind, stream)
        click.echo(f"{handover.table.kind}/{handover.table.name} belongs to {handover.from_owner}.")
        click.echo(f"It will belong to {handover.to_owner}. The former owner can no longer write it.")
        confirm_name(f"Type {name} to hand it over", name, confirmed)
        record_action(
            settings.home,
            "table claim",
            name,
            {"from": handover.from_owner, "to": str(handover.to_owner)},
        )
        hand_over(settings, store, handover)
    click.echo(f"{name} belongs to stream {stream} now.")
