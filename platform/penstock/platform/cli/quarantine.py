"""`penstock quarantine`: records that were found to be no good, and what is to become of them."""

import base64
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import Steps, example, print_json, print_table
from penstock.platform.cli.quarantine_view import COLUMNS, as_data, row_of

if TYPE_CHECKING:
    from penstock.platform.quarantine import Quarantine
    from penstock.quality.quarantine.records import Place, Quarantined
    from penstock.quality.quarantine.standing import Standing

STATES = ("held", "replaying", "replayed", "discarded")


@click.group(name="quarantine")
def command() -> None:
    """Look at records that were found to be no good, and send them again or give them up.

    Each is kept as its topic had it, byte for byte. A record is decided on once: it is sent again under the name
    of a producer that proves its delivery, or discarded, and `list` accounts for all of them.
    """


def _topics(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    from penstock.ingestion.contracts import contract_names

    return [name for name in contract_names() if name.startswith(typed)]


_topic = click.argument("topic", shell_complete=_topics)
_json = click.option("--json", "as_json", is_flag=True, help="Print for programs.")
_places = click.argument("places", metavar="[PARTITION:OFFSET]...", nargs=-1)
_reason = click.option("--reason", help="Only records of this reason, or of one that begins so.")
_all = click.option("--all", "everything", is_flag=True, help="All records that are held.")
_why = click.option(
    "--why", default="", help="A word for those who come after; it is kept with the decision."
)


@command.command(
    name="list",
    epilog=example(
        "penstock quarantine list sensors", "penstock quarantine list sensors --state held --json"
    ),
)
@_topic
@_reason
@click.option("--state", type=click.Choice(STATES), help="Only records that stand so.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="How many to show.")
@_json
def list_records(topic: str, reason: str | None, state: str | None, limit: int, as_json: bool) -> None:
    """List the records of a topic's quarantine; the last line accounts for all of them."""
    from penstock.quality.quarantine.standing import counts

    quarantine = _opened(topic)
    found = quarantine.standings()
    chosen = [one for one in found if _is_meant(one, reason, state)]
    if as_json:
        print_json({"counts": counts(found), "records": [as_data(one) for one in chosen]})
        return
    now = set(quarantine.versions().values())
    print_table(
        COLUMNS,
        [row_of(one, now) for one in chosen[:limit]],
        empty=f"no record of {topic} is in quarantine" if not found else "none is like that",
    )
    if len(chosen) > limit:
        click.echo(f"{limit} of {len(chosen)} are shown; --limit shows more, --json all of them")
    told = " + ".join(f"{count} {state}" for state, count in counts(found).items())
    click.echo(f"{len(found)} quarantined = {told}")


@command.command(
    epilog=example(
        "penstock quarantine show sensors 1:4711", "penstock quarantine show sensors 1:4711 --raw > record"
    )
)
@_topic
@click.argument("place", metavar="PARTITION:OFFSET")
@click.option("--raw", is_flag=True, help="Write the value's bytes and nothing else.")
@_json
def show(topic: str, place: str, raw: bool, as_json: bool) -> None:
    """Show everything that is known of a record."""
    from penstock.quality.quarantine.records import found, parsed_place

    standing = _opened(topic).standings()
    (record,) = found([one.record for one in standing], [parsed_place(place)], topic)
    (one,) = [each for each in standing if each.record is record]
    if raw:
        sys.stdout.buffer.write(record.value or b"")
    elif as_json:
        print_json(as_data(one))
    else:
        known = {name: value for name, value in as_data(one).items() if value is not None}
        rows = [
            (name, ", ".join(value) if isinstance(value, list) else value) for name, value in known.items()
        ]
        print_table(("record", f"{topic} {record.place}"), rows)


@command.command(
    epilog=example(
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
    quarantine = _opened(topic)
    mended = _mended(repaired) if repaired else {}
    chosen = _chosen(quarantine, places, reason, everything, list(mended))
    with Steps().step(f"{len(chosen)} records of {topic} are judged and sent"):
        done = quarantine.replay(quarantine.judge(chosen, mended), why)
    refused = done.judgement.refused
    if as_json:
        told = [{"place": str(one.record.place), "why": one.why} for one in refused]
        print_json({"decided": done.taken, "sent": done.summary.acknowledged, "refused": told})
    else:
        rows = [(str(one.record.place), one.why) for one in refused]
        if rows:
            print_table(("refused", "because"), rows)
        click.echo(
            f"{done.taken} decided, {done.summary.acknowledged} sent to {topic}, {len(refused)} refused"
        )
    return 1 if refused or not done.summary.complete else 0


@command.command(
    epilog=example(
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
    quarantine = _opened(topic)
    chosen = _chosen(quarantine, places, reason, everything, [])
    click.echo(f"{quarantine.discard(chosen, why)} of {len(chosen)} records are discarded")


def _opened(topic: str) -> "Quarantine":
    from penstock.platform.quarantine import Quarantine

    return Quarantine(current_settings(), topic)


def _chosen(
    quarantine: "Quarantine",
    places: Sequence[str],
    reason: str | None,
    everything: bool,
    mended: "list[Place]",
) -> "list[Quarantined]":
    """The held records that are meant: by address, by reason, all, or those that were repaired."""
    from penstock.quality.quarantine.records import found, parsed_place

    standing = quarantine.standings()
    named = [parsed_place(place) for place in places]
    meant = found([one.record for one in standing], list(dict.fromkeys(named or mended)), quarantine.topic)
    if reason is not None or everything:
        meant += [one.record for one in standing if _is_meant(one, reason, "held")]
    states = {one.record.place: one.state for one in standing}
    for place in (record.place for record in dict.fromkeys(meant) if states[record.place] != "held"):
        click.echo(
            f"{quarantine.topic} {place} is {states[place]}: it was decided on, and is left alone", err=True
        )
    return [record for record in dict.fromkeys(meant) if states[record.place] == "held"]


def _is_meant(one: "Standing", reason: str | None, state: str | None) -> bool:
    return (reason is None or one.record.reason.startswith(reason)) and state in (None, one.state)


def _mended(file: Path) -> "dict[Place, bytes]":
    from penstock.quality.quarantine.records import Place

    mended: dict[Place, bytes] = {}
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        try:
            told = json.loads(line)
            place = Place(_whole(told["partition"]), _whole(told["offset"]))
            mended[place] = _bytes(told)
        except (ValueError, KeyError, TypeError) as problem:
            raise click.UsageError(
                f"line {number} of --repaired is no object with partition, offset and value: {problem!r}"
            ) from problem
    return mended


def _whole(number: object) -> int:
    if type(number) is not int:
        raise ValueError(f"{number!r} is no whole number")
    return number


def _bytes(told: dict[str, Any]) -> bytes:
    if told.get("value_base64") and told.get("value") is not None:
        raise ValueError("it has two values; leave value or value_base64 out")
    if told.get("value_base64"):
        return base64.b64decode(told["value_base64"], validate=True)
    value = told["value"]
    if value is None:
        raise ValueError("it has no value to be sent")
    return value.encode() if isinstance(value, str) else json.dumps(value, separators=(",", ":")).encode()
