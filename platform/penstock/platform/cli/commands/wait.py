"""`penstock wait`: wait until the tables contain a record."""

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import json_option
from penstock.platform.cli.output import format_examples, print_json

SECTION: Section = "Results and quality"


@click.command(
    name="wait",
    short_help="Wait until the tables contain a record",
    epilog=format_examples(
        "penstock wait sensors 0 1234", "penstock wait sensors 0 1234 --timeout 5s --json"
    ),
)
@click.argument("topic")
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("offset", type=click.IntRange(min=0))
@click.option(
    "--timeout", default="1m", show_default=True, metavar="DURATION", help="Stop waiting after this time."
)
@json_option
def command(topic: str, partition: int, offset: int, timeout: str, as_json: bool) -> None:
    """Wait until every table of every stream that reads TOPIC contains a record, and say what became of it.

    A record is aggregated, late, quarantined, duplicate or filtered. Duplicate and filtered records are only
    counted, so the answer may name several fates. Streams that never ran are left out.
    """
    from penstock.core.duration import parse_duration_ms
    from penstock.core.names import explain_unknown_name
    from penstock.engine.batch.input_watermarks import topic_of
    from penstock.ingestion.contracts import list_contract_names
    from penstock.platform.errors import UnknownTopicError
    from penstock.platform.services.record_arrival import RecordAddress, has_run, wait_for_record
    from penstock.platform.services.stream_catalog import load_valid_plans

    settings, timeout_s = current_settings(), parse_duration_ms(timeout) / 1000
    readers = [plan for plan in load_valid_plans() if topic in map(topic_of, plan.sources)]
    if not readers and topic not in list_contract_names():
        raise UnknownTopicError(explain_unknown_name("topic", topic, list_contract_names()))
    streams = settings.home / "streams"
    plans = [plan for plan in readers if has_run(plan, streams)]
    address = RecordAddress(topic, partition, offset)
    arrivals = wait_for_record(plans, streams, settings.warehouse_path, address, timeout_s)
    if as_json:
        print_json(
            [
                {
                    "stream": arrival.stream,
                    "stage": arrival.stage,
                    "fates": list(arrival.fates),
                    "batch_id": arrival.batch_id,
                    "reason": arrival.reason,
                }
                for arrival in arrivals
            ]
        )
        return
    for arrival in arrivals:
        click.echo(arrival.describe())
    if not arrivals:
        click.echo(f"no stream that has run reads topic {topic}")
