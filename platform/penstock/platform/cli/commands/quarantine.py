"""`penstock quarantine`: inspect, replay or discard quarantined records."""

import base64
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import complete_names, json_option
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.cli.quarantine_view import RECORD_COLUMNS, to_data, to_row
from penstock.platform.cli.steps import StepPrinter
from penstock.quality.quarantine.quarantine_state import QuarantineState

if TYPE_CHECKING:
    from penstock.platform.services.quarantine import TopicQuarantine
    from penstock.quality.quarantine.quarantined_records import QuarantinedRecord, RecordPosition
    from penstock.quality.quarantine.record_status import QuarantineStatus

SECTION: Section = "Results and quality"


@click.group(
    name="quarantine",
    short_help="Inspect, replay or discard quarantined records",
    epilog=format_examples("penstock quarantine list sensors", "penstock quarantine replay sensors --all"),
)
def command() -> None:
    """Inspect, replay or discard quarantined records.

    The quarantine keeps each record byte for byte: those that streams refused, and the dead letters of producers,
    whose addresses start with `dead-letters/`. You decide about a record once: replay it, with a ledger that proves
    its delivery, or discard it. `list` accounts for all records.
    """


def _list_topics() -> Iterable[str]:
    from penstock.ingestion.contracts import list_contract_names

    return list_contract_names()


_topic = click.argument("topic", shell_complete=complete_names(_list_topics))
_positions = click.argument("positions", metavar="[[dead-letters/]PARTITION:OFFSET]...", nargs=-1)
_reason = click.option("--reason", help="Only records whose reason starts with this text.")
_all = click.option("--all", "everything", is_flag=True, help="All pending records.")
_why = click.option("--why", default="", help="Comment to store with the decision.")


@command.command(
    name="list",
    short_help="List the quarantined records of a topic",
    epilog=format_examples(
        "penstock quarantine list sensors", "penstock quarantine list sensors --state pending --json"
    ),
)
@_topic
@_reason
@click.option(
    "--state",
    type=click.Choice([state.value for state in QuarantineState]),
    help="Only records in this state.",
)
@click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(min=1), help="Number of records to show."
)
@json_option
def list_records(topic: str, reason: str | None, state: str | None, limit: int, as_json: bool) -> int:
    """List the quarantined records of a topic, and the dead letters of its producers.

    The last lines count all of them by state. The exit code is 1 if the dead letters cannot be read.
    """
    from penstock.quality.quarantine.record_status import count_states

    quarantine = _open_quarantine(topic)
    statuses, problem = _read_statuses(quarantine)
    quarantined = [status for status in statuses if not status.record.position.is_dead_letter]
    dead_letters = [status for status in statuses if status.record.position.is_dead_letter]
    selected = [status for status in statuses if _is_selected(status, reason, state)]
    exit_code = 1 if problem else 0
    if as_json:
        details = quarantine.explain_reasons([status.record for status in selected])
        print_json(
            {
                "counts": count_states(quarantined),
                "dead_letter_counts": None if problem else count_states(dead_letters),
                "records": [to_data(status, details.get(status.record.position, "")) for status in selected],
            }
        )
        return exit_code
    details = quarantine.explain_reasons([status.record for status in selected[:limit]])
    current_versions = set(quarantine.contract_versions().values())
    print_table(
        RECORD_COLUMNS,
        [
            to_row(status, current_versions, details.get(status.record.position, ""))
            for status in selected[:limit]
        ],
        empty=f"no quarantined records of {topic}" if not statuses else "no matching records",
    )
    if len(selected) > limit:
        click.echo(f"{limit} of {len(selected)} records shown; use --limit for more, --json for all")
    click.echo(_format_account(quarantined, "quarantined"))
    if dead_letters:
        click.echo(_format_account(dead_letters, "dead letters"))
    return exit_code


@command.command(
    short_help="Show one quarantined record",
    epilog=format_examples(
        "penstock quarantine show sensors 1:4711", "penstock quarantine show sensors 1:4711 --raw > record"
    ),
)
@_topic
@click.argument("position", metavar="PARTITION:OFFSET")
@click.option("--raw", is_flag=True, help="Write only the bytes of the value.")
@json_option
def show(topic: str, position: str, raw: bool, as_json: bool) -> None:
    """Show all details of a quarantined record."""
    from penstock.quality.quarantine.quarantined_records import find_records, parse_position

    quarantine = _open_quarantine(topic)
    statuses, _ = _read_statuses(quarantine)
    (record,) = find_records([status.record for status in statuses], [parse_position(position)], topic)
    (status,) = [candidate for candidate in statuses if candidate.record is record]
    detail = quarantine.explain_reasons([record]).get(record.position, "")
    if raw:
        sys.stdout.buffer.write(record.value or b"")
    elif as_json:
        print_json(to_data(status, detail))
    else:
        record_fields = {name: value for name, value in to_data(status, detail).items() if value is not None}
        rows = [
            (name, ", ".join(value) if isinstance(value, list) else value)
            for name, value in record_fields.items()
        ]
        print_table(("record", f"{topic} {record.position}"), rows)


@command.command(
    short_help="Send quarantined records to their topic again",
    epilog=format_examples(
        "penstock quarantine replay sensors --reason missing_field:device",
        "penstock quarantine replay sensors 1:4711 --repaired fixed.jsonl",
        "penstock quarantine replay sensors dead-letters/0:12",
        "penstock quarantine replay sensors",
    ),
)
@_topic
@_positions
@_reason
@_all
@click.option(
    "--repaired",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON lines with partition, offset and value (or value_base64), as printed by `list --json`.",
)
@_why
@json_option
def replay(
    topic: str,
    positions: Sequence[str],
    reason: str | None,
    everything: bool,
    repaired: Path | None,
    why: str,
    as_json: bool,
) -> int:
    """Send quarantined records to their topic again, unchanged or repaired, each exactly once.

    The current contract and checks validate each record; an invalid record stays in quarantine. So does a record
    that another stream accepted or has not read yet, because that stream would count it twice.

    Without a selection, the command decides about no record; it only sends records whose earlier replay is
    incomplete. The exit code is 1 if a record is refused.
    """
    from penstock.platform.services.quarantine_decisions import DecisionAuthor, replay_records

    quarantine = _open_quarantine(topic)
    repaired_values = _read_repaired_file(repaired) if repaired else {}
    records = _select_records(quarantine, positions, reason, everything, list(repaired_values))
    noun = "record" if len(records) == 1 else "records"
    with StepPrinter().step(f"validate and send {len(records)} {noun} of {topic}"):
        judgement = quarantine.judge_replay(records, repaired_values)
        result = replay_records(current_settings().home, quarantine, judgement, DecisionAuthor(why))
    refused = result.judgement.refused
    if as_json:
        refusals = [
            {"position": str(refusal.record.position), "reason": refusal.reason} for refusal in refused
        ]
        print_json(
            {
                "decided": result.decided_count,
                "sent": result.sent_count,
                "refused": refusals,
            }
        )
    else:
        rows = [(str(refusal.record.position), refusal.reason) for refusal in refused]
        if rows:
            print_table(("refused", "reason"), rows)
        click.echo(
            f"{result.decided_count} decided, {result.sent_count} sent to {topic}, {len(refused)} refused"
        )
    return 1 if refused or not result.is_complete else 0


@command.command(
    short_help="Discard quarantined records for good",
    epilog=format_examples(
        "penstock quarantine discard sensors 1:4711 --why 'a test of the vendor'",
        "penstock quarantine discard sensors --reason no_value",
    ),
)
@_topic
@_positions
@_reason
@_all
@_why
def discard(topic: str, positions: Sequence[str], reason: str | None, everything: bool, why: str) -> None:
    """Discard quarantined records for good. Their bytes stay in the quarantine table."""
    from penstock.platform.services.quarantine_decisions import DecisionAuthor, discard_records

    if not (positions or reason is not None or everything):
        raise click.UsageError(
            "select records by position (for example 1:4711), with --reason, or with --all"
        )
    quarantine = _open_quarantine(topic)
    records = _select_records(quarantine, positions, reason, everything, [])
    if not records:
        click.echo("no pending record is selected; nothing was discarded")
        return
    discarded = discard_records(current_settings().home, quarantine, records, DecisionAuthor(why))
    click.echo(f"{discarded} of {len(records)} records discarded")


def _open_quarantine(topic: str) -> "TopicQuarantine":
    from penstock.platform.services.quarantine import TopicQuarantine

    return TopicQuarantine(current_settings(), topic)


def _read_statuses(quarantine: "TopicQuarantine") -> "tuple[list[QuarantineStatus], str]":
    """Return the status of each record, and why the dead letters are missing, which is also shown."""
    from penstock.platform.services.quarantine_decisions import read_known_statuses

    statuses, problem = read_known_statuses(quarantine)
    if problem:
        click.secho(f"penstock: dead letters are not shown. {problem}", fg="yellow", err=True)
    return statuses, problem


def _format_account(statuses: "Sequence[QuarantineStatus]", name: str) -> str:
    from penstock.quality.quarantine.record_status import count_states

    counts_text = " + ".join(f"{count:,} {state}" for state, count in count_states(statuses).items())
    return f"{len(statuses):,} {name} = {counts_text}"


def _select_records(
    quarantine: "TopicQuarantine",
    position_texts: Sequence[str],
    reason: str | None,
    everything: bool,
    repaired_positions: "list[RecordPosition]",
) -> "list[QuarantinedRecord]":
    """The pending records that are meant: by address, by reason, all, or those that were repaired."""
    from penstock.quality.quarantine.quarantined_records import find_records, parse_position

    statuses, _ = _read_statuses(quarantine)
    positions = [parse_position(position) for position in position_texts]
    selected = find_records(
        [status.record for status in statuses],
        list(dict.fromkeys(positions or repaired_positions)),
        quarantine.topic,
    )
    if reason is not None or everything:
        selected += [status.record for status in statuses if _is_selected(status, reason, "pending")]
    state_by_position = {status.record.position: status.state for status in statuses}
    for position in (
        record.position
        for record in dict.fromkeys(selected)
        if state_by_position[record.position] != "pending"
    ):
        click.echo(
            f"{quarantine.topic} {position} skipped: it is already {state_by_position[position]}",
            err=True,
        )
    return [record for record in dict.fromkeys(selected) if state_by_position[record.position] == "pending"]


def _is_selected(status: "QuarantineStatus", reason: str | None, state: str | None) -> bool:
    return (reason is None or status.record.reason.startswith(reason)) and state in (None, status.state)


def _read_repaired_file(file: Path) -> "dict[RecordPosition, bytes]":
    from penstock.quality.quarantine.quarantined_records import RecordPosition

    repaired_values: dict[RecordPosition, bytes] = {}
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        try:
            entry = json.loads(line)
            position = RecordPosition(
                _require_integer(entry["partition"]),
                _require_integer(entry["offset"]),
                "dead-letters" if entry.get("origin") == "dead-letters" else "topic",
            )
            repaired_values[position] = _decode_value(entry)
        except (ValueError, KeyError, TypeError) as error:
            raise click.UsageError(
                f"line {number} of --repaired is not an object with partition, offset and value: {error!r}"
            ) from error
    return repaired_values


def _require_integer(number: object) -> int:
    if type(number) is not int:
        raise ValueError(f"{number!r} is not an integer")
    return number


def _decode_value(entry: dict[str, Any]) -> bytes:
    if entry.get("value_base64") and entry.get("value") is not None:
        raise ValueError("both value and value_base64 are set; remove one")
    if entry.get("value_base64"):
        return base64.b64decode(entry["value_base64"], validate=True)
    value = entry["value"]
    if value is None:
        raise ValueError("the value is null")
    return value.encode() if isinstance(value, str) else json.dumps(value, separators=(",", ":")).encode()
