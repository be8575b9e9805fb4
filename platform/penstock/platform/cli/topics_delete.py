"""`penstock topics delete`: delete a topic with its records."""

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.output import format_examples
from penstock.platform.cli.removal_view import RemovalOptions, removal_options, run_removal


@click.command(
    short_help="Delete a topic that nothing declares or uses",
    epilog=format_examples(
        "penstock topics delete old_orders --dry-run", "penstock topics delete old_orders --yes old_orders"
    ),
)
@click.argument("topic")
@removal_options
def delete(topic: str, options: RemovalOptions) -> None:
    """Delete a topic of the broker with all its records.

    The command refuses a topic that a contract declares, or that a pipeline reads or publishes to.
    """
    from penstock.platform.services.topic_delete import delete_topic, plan_topic_delete

    settings = current_settings()
    with use_control_store(settings) as store:
        run_removal(
            settings,
            plan_topic_delete(settings, store, topic),
            "topics delete",
            topic,
            lambda _report_progress: delete_topic(settings, store, topic),
            options,
        )
