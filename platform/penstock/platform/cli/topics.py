"""`penstock topics`: the broker's topics and the registry's schemas, compared with the contracts, and made so."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import Steps, example, print_json, print_table
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from penstock.ingestion.topics import Change, TopicContents, TopicPlan


@click.group(name="topics")
def command() -> None:
    """Topics as code: see what there is and what would change, then change it."""


def _known(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    """Refuse an environment that no contract speaks of."""
    from penstock.ingestion.contracts import declared
    from penstock.ingestion.topics import environments

    if name is not None and name not in (known := environments(declared().sound)):
        raise click.BadParameter(f"no contract declares {name!r}; there are {', '.join(known)}")
    return name


_environment = click.option(
    "--environment",
    callback=_known,
    help="Whose layout to take from the contracts; that of the settings without.",
)
_destroy = click.option(
    "--allow-destroy",
    "destroy",
    multiple=True,
    metavar="TOPIC",
    help="May lose this topic's records; repeatable.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print for programs.")


@dataclass(frozen=True)
class Found:
    """What differs: topics of the broker, and the versions that schemas would become, by topic.

    A topic whose contract is broken is not compared; it is told of with the reason.
    """

    topics: "TopicPlan"
    schemas: Mapping[str, int]
    broken: Mapping[str, str]


@command.command(name="list", epilog=example("penstock topics list", "penstock topics list sensors"))
@click.argument("topic", required=False)
@_json
def list_topics(topic: str | None, as_json: bool) -> None:
    """List the broker's topics: partitions, copies, how long records stay, how many there are.

    With a TOPIC: its partitions, with the first offset and the next one of each.
    """
    from penstock.ingestion.topics import contents
    from penstock.platform.errors import UnknownTopicError

    settings = current_settings()
    found = contents(settings.kafka.servers, settings.kafka.client("topics"))
    if topic is not None and not (found := tuple(each for each in found if each.name == topic)):
        raise UnknownTopicError(
            f"there is no topic {topic!r} at {settings.kafka.servers}; `penstock topics apply` makes those that "
            "are declared"
        )
    if as_json:
        print_json([asdict(each) for each in found])
    elif topic is None:
        print_table(
            ("topic", "partitions", "replicas", "retention", "records"),
            [(t.name, len(t.partitions), t.replicas, _kept(t), f"{t.records:,}") for t in found],
            empty="no topics yet: `penstock topics apply` makes those that are declared",
        )
    else:
        (only,) = found
        rows = [(each.partition, each.first, each.end, f"{each.records:,}") for each in only.partitions]
        print_table(("partition", "first offset", "next offset", "records"), rows)


def _kept(topic: "TopicContents") -> str:
    """Say how long records stay."""
    if topic.compacted:
        return "the last of each key"
    return "for ever" if topic.retention_ms < 0 else f"{topic.retention_ms / 86_400_000:g} days"


@command.command(
    epilog=example("penstock topics plan", "penstock topics plan --environment production --json")
)
@_environment
@_destroy
@_json
def plan(environment: str | None, destroy: tuple[str, ...], as_json: bool) -> int:
    """Show what would be changed; ends with 1 when anything would be.

    A contract that its registered versions forbid is refused, with the field and the rule that it breaks.
    """
    found = _found(current_settings(), environment, destroy)
    _show(found, found.topics.changes, as_json, "topics and schemas are as declared")
    return 1 if found.topics.changes or found.schemas or found.broken else 0


@command.command(epilog=example("penstock topics apply", "penstock topics apply --allow-destroy old_topic"))
@_environment
@_destroy
@_json
def apply(environment: str | None, destroy: tuple[str, ...], as_json: bool) -> int:
    """Make the topics as declared, and register their schemas.

    What would lose records is refused unless it is allowed by name; then nothing at all is changed. Ends with 1
    where a contract cannot be used: its topic is left as it is.
    """
    from penstock.ingestion.contracts import load_contract
    from penstock.ingestion.registry import register_contract
    from penstock.ingestion.topics import apply_plan
    from penstock.platform.registry import registry_of

    settings = current_settings()
    found = _found(settings, environment, destroy)
    done = apply_plan(settings.kafka.servers, found.topics, destroy, settings.kafka.client("topics"))
    for topic in found.schemas:
        register_contract(registry_of(settings), load_contract(topic))
    _show(found, done, as_json, "nothing to do: topics and schemas are as declared")
    return 1 if found.broken else 0


def _found(settings: Settings, environment: str | None, destroy: tuple[str, ...]) -> Found:
    from penstock.ingestion.contracts import declared, load_contract
    from penstock.ingestion.registry import check_contract
    from penstock.ingestion.topics import plan_for
    from penstock.platform.registry import registry_of

    kafka, registry, there = settings.kafka, registry_of(settings), declared()
    for topic in destroy:
        if topic in there.broken:
            load_contract(topic)  # what cannot be read is declared all the same, and says so
    versions = {contract.topic: check_contract(registry, contract) for contract in there.sound}
    layout = environment or kafka.layout
    with Steps().step(f"compared with the broker at {kafka.servers}"):
        topics = plan_for(kafka.servers, there.sound, layout, destroy, kafka.client("topics"))
    broken = {name for topic in there.broken for name in (topic, f"{topic}.dead-letters")}
    undeclared = tuple(name for name in topics.undeclared if name not in broken)
    return Found(
        replace(topics, undeclared=undeclared),
        {topic: version for topic, version in versions.items() if version is not None},
        {topic: str(problem) for topic, problem in there.broken.items()},
    )


def _show(found: Found, changes: "tuple[Change, ...]", as_json: bool, none: str) -> None:
    undeclared = found.topics.undeclared
    if as_json:
        listed = [asdict(change) for change in changes]
        told = {"changes": listed, "schemas": found.schemas, "undeclared": undeclared}
        print_json({**told, "broken": found.broken})
        return
    rows: list[tuple[str, str, str, str]]
    rows = [(change.action, change.topic, _detail(change), change.destroys or "") for change in changes]
    rows += [("register", topic, f"schema version {version}", "") for topic, version in found.schemas.items()]
    print_table(("action", "topic", "change", "destroys"), rows, empty=none)
    if undeclared:
        click.echo(f"not declared, left alone: {', '.join(undeclared)}")
    for topic, problem in found.broken.items():
        click.echo(f"{topic} is left alone until its contract is mended: {problem}", err=True)


def _detail(change: "Change") -> str:
    if change.action == "create" and change.after:
        copies = f", {change.after.replicas} copies" if change.after.replicas > 1 else ""
        return f"{change.after.partitions} partitions{copies}"
    return ", ".join(f"{name}: {before} -> {after}" for name, before, after in change.differences)
