"""`penstock quarantine`: records that were found to be no good, and what is to become of them."""

import base64
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import StepPrinter, format_examples, print_json, print_table
from penstock.platform.cli.quarantine_view import RECORD_COLUMNS, to_data, to_row

if TYPE_CHECKING:
    from penstock.platform.services.quarantine import TopicQuarantine
    from penstock.quality.quarantine.quarantined_records import QuarantinedRecord, RecordPosition
    from penstock.quality.quarantine.record_status import QuarantineStatus

QUARANTINE_STATES = ("held", "replaying", "replayed", "discarded")


@click.group(name="quarantine")
def command() -> None:
    """Look at records that were found to be no good, and send them again or give them up.

    Each is kept as its topic had it, byte for byte. A record is decided on once: it is sent again under the name
    of a producer that proves its delivery, or discarded, and `list` accounts for all of them.
    """


def _complete_topics(_context: click.Context, _parameter: click.Parameter, prefix: str) -> list[str]:
    from penstock.ingestion.contracts import list_contract_names

    return [name for name in list_contract_names() if name.startswith(prefix)]


_topic = click.argument("topic", shell_complete=_complete_topics)
_json = click.option("--json", "as_json", is_flag=True, help="Print for programs.")
_places = click.argument("places", metavar="[PARTITION:OFFSET]...", nargs=-1)
_reason = click.option("--reason", help="Only records of this reason, or of one that begins so.")
_all = click.option("--all", "everything", is_flag=True, help="All records that are held.")
_why = click.option(
    "--why", default="", help="A word for those who come after; it is kept with the decision."
)


@command.command(
    name="list",
    epilog=format_examples(
        "penstock quarantine list sensors", "penstock quarantine list sensors --state held --json"
    ),
)
@_topic
@_reason
@click.option("--state", type=click.Choice(QUARANTINE_STATES), help="Only records that stand so.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="How many to show.")
@_json
def list_records(topic: str, reason: str | None, state: str | None, limit: int, as_json: bool) -> None:
    """List the records of a topic's quarantine; the last line accounts for all of them."""
    from penstock.quality.quarantine.record_status import count_states

    quarantine = _open_quarantine(topic)
    statuses = quarantine.list_statuses()
    selected = [status for status in statuses if _is_selected(status, reason, state)]
    if as_json:
        print_json({"counts": count_states(statuses), "records": [to_data(status) for status in selected]})
        return
    current_versions = set(quarantine.contract_versions().values())
    print_table(
        RECORD_COLUMNS,
        [to_row(status, current_versions) for status in selected[:limit]],
        empty=f"no record of {topic} is in quarantine" if not statuses else "none is like that",
    )
    if len(selected) > limit:
        click.echo(f"{limit} of {len(selected)} are shown; --limit shows more, --json all of them")
    counts_text = " + ".join(f"{count} {state}" for state, count in count_states(statuses).items())
    click.echo(f"{len(statuses)} quarantined = {counts_text}")


@command.command(
    epilog=format_examples(
        "penstock quarantine show sensors 1:4711", "penstock quarantine show sensors 1:4711 --raw > record"
    )
)
@_topic
@click.argument("place", metavar="PARTITION:OFFSET")
@click.option("--raw", is_flag=True, help="Write the value's bytes and nothing else.")
@_json
def show(topic: str, place: str, raw: bool, as_json: bool) -> None:
    """Show everything that is known of a record."""
    from penstock.quality.quarantine.quarantined_records import find_records, parse_position

    statuses = _open_quarantine(topic).list_statuses()
    (record,) = find_records([status.record for status in statuses], [parse_position(place)], topic)
    (status,) = [candidate for candidate in statuses if candidate.record is record]
    if raw:
        sys.stdout.buffer.write(record.value or b"")
    elif as_json:
        print_json(to_data(status))
    else:
        record_fields = {name: value for name, value in to_data(status).items() if value is not None}
        rows = [
            (name, ", ".join(value) if isinstance(value, list) else value)
            for name, value in record_fields.items()
        ]
        print_table(("record", f"{topic} {record.position}"), rows)


@command.command(
    epilog=format_examples(
        "penstock quarantine replay sensors --reason missing_field:device",
        "penstock quarantine replay sensors 1:4711 --repaired mended.jsonl",
        "penstock quarantine replay sensors",
    )
)
@_topic
@_places
@_reason
@_all
@click.option(
    "--repaired",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Lines of JSON with partition, offset and value (or value_base64), as `list --json` has them.",
)
@_why
@_json
def replay(
    topic: str,
    places: Sequence[str],
    reason: str | None,
    everything: bool,
    repaired: Path | None,
    why: str,
    as_json: bool,
) -> int:
    """Send records again, as they are or as they were repaired, each once.

    Records are judged by the contract as it is now, and what still breaks it, or a check that is as it was, stays
    held. So does a record that another stream took, or has not read yet: it would count there twice. Named by
    nothing, none is decided on, and what was decided before and has not arrived is sent. Ends with 1 where a record
    was refused.
    """
    quarantine = _open_quarantine(topic)
    repaired_values = _read_repaired_file(repaired) if repaired else {}
    records = _select_records(quarantine, places, reason, everything, list(repaired_values))
    with StepPrinter().step(f"{len(records)} records of {topic} are judged and sent"):
        result = quarantine.replay(quarantine.judge_replay(records, repaired_values), why)
    refused = result.judgement.refused
    if as_json:
        refusals = [{"place": str(refusal.record.position), "why": refusal.reason} for refusal in refused]
        print_json(
            {
                "decided": result.decided_count,
                "sent": result.summary.acknowledged_records,
                "refused": refusals,
            }
        )
    else:
        rows = [(str(refusal.record.position), refusal.reason) for refusal in refused]
        if rows:
            print_table(("refused", "because"), rows)
        click.echo(
            f"{result.decided_count} decided, {result.summary.acknowledged_records} sent to {topic}, "
            f"{len(refused)} refused"
        )
    return 1 if refused or not result.summary.complete else 0


@command.command(
    epilog=format_examples(
        "penstock quarantine discard sensors 1:4711 --why 'a test of the vendor'",
        "penstock quarantine discard sensors --reason no_value",
    )
)
@_topic
@_places
@_reason
@_all
@_why
def discard(topic: str, places: Sequence[str], reason: str | None, everything: bool, why: str) -> None:
    """Give records up, for good. Their bytes stay in the table."""
    if not (places or reason is not None or everything):
        raise click.UsageError("say which records: by address, as in 1:4711, by --reason, or --all")
    quarantine = _open_quarantine(topic)
    records = _select_records(quarantine, places, reason, everything, [])
    click.echo(f"{quarantine.discard(records, why)} of {len(records)} records are discarded")


def _open_quarantine(topic: str) -> "TopicQuarantine":
    from penstock.platform.services.quarantine import TopicQuarantine

    return TopicQuarantine(current_settings(), topic)


def _select_records(
    quarantine: "TopicQuarantine",
    position_texts: Sequence[str],
    reason: str | None,
    everything: bool,
    repaired_positions: "list[RecordPosition]",
) -> "list[QuarantinedRecord]":
    """The held records that are meant: by address, by reason, all, or those that were repaired."""
    from penstock.quality.quarantine.quarantined_records import find_records, parse_position

    statuses = quarantine.list_statuses()
    positions = [parse_position(position) for position in position_texts]
    selected = find_records(
        [status.record for status in statuses],
        list(dict.fromkeys(positions or repaired_positions)),
        quarantine.topic,
    )
    if reason is not None or everything:
        selected += [status.record for status in statuses if _is_selected(status, reason, "held")]
    state_by_position = {status.record.position: status.state for status in statuses}
    for position in (
        record.position for record in dict.fromkeys(selected) if state_by_position[record.position] != "held"
    ):
        click.echo(
            f"{quarantine.topic} {position} is {state_by_position[position]}: it was decided on, and is left alone",
            err=True,
        )
    return [record for record in dict.fromkeys(selected) if state_by_position[record.position] == "held"]


def _is_selected(status: "QuarantineStatus", reason: str | None, state: str | None) -> bool:
    return (reason is None or status.record.reason.startswith(reason)) and state in (None, status.state)


def _read_repaired_file(file: Path) -> "dict[RecordPosition, bytes]":
    from penstock.quality.quarantine.quarantined_records import RecordPosition

    repaired_values: dict[RecordPosition, bytes] = {}
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        try:
            entry = json.loads(line)
            position = RecordPosition(_require_integer(entry["partition"]), _require_integer(entry["offset"]))
            repaired_values[position] = _decode_value(entry)
        except (ValueError, KeyError, TypeError) as error:
            raise click.UsageError(
                f"line {number} of --repaired is no object with partition, offset and value: {error!r}"
            ) from error
    return repaired_values


def _require_integer(number: object) -> int:
    if type(number) is not int:
        raise ValueError(f"{number!r} is no whole number")
    return number


def _decode_value(entry: dict[str, Any]) -> bytes:
    if entry.get("value_base64") and entry.get("value") is not None:
        raise ValueError("it has two values; leave value or value_base64 out")
    if entry.get("value_base64"):
        return base64.b64decode(entry["value_base64"], validate=True)
    value = entry["value"]
    if value is None:
        raise ValueError("it has no value to be sent")
    return value.encode() if isinstance(value, str) else json.dumps(value, separators=(",", ":")).encode()
