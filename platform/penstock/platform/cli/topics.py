"""`penstock topics`: the broker's topics and the registry's schemas, compared with the contracts, and made so."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import StepPrinter, format_examples, print_json, print_table
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from penstock.ingestion.topics import TopicChange, TopicDescription, TopicPlan


@click.group(name="topics")
def command() -> None:
    """Topics as code: see what there is and what would change, then change it."""


def _check_environment(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    """Refuse an environment that no contract speaks of."""
    from penstock.ingestion.contracts import load_catalog
    from penstock.ingestion.topics import list_environments

    if name is not None and name not in (known_environments := list_environments(load_catalog().contracts)):
        raise click.BadParameter(f"no contract declares {name!r}; there are {', '.join(known_environments)}")
    return name


_environment = click.option(
    "--environment",
    callback=_check_environment,
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
class TopicDifferences:
    """What differs: topics of the broker, and the versions that schemas would become, by topic.

    A topic whose contract is broken is not compared; it is told of with the reason.
    """

    topic_plan: "TopicPlan"
    schema_versions: Mapping[str, int]
    contract_errors: Mapping[str, str]


@command.command(name="list", epilog=format_examples("penstock topics list", "penstock topics list sensors"))
@click.argument("topic", required=False)
@_json
def list_topics(topic: str | None, as_json: bool) -> None:
    """List the broker's topics: partitions, copies, how long records stay, how many there are.

    With a TOPIC: its partitions, with the first offset and the next one of each.
    """
    from penstock.ingestion.topics import describe_topics
    from penstock.platform.errors import UnknownTopicError

    settings = current_settings()
    broker_topics = describe_topics(settings.kafka.bootstrap_servers, settings.kafka.client_config("topics"))
    if topic is not None and not (
        broker_topics := tuple(entry for entry in broker_topics if entry.name == topic)
    ):
        raise UnknownTopicError(
            f"there is no topic {topic!r} at {settings.kafka.bootstrap_servers}; `penstock topics apply` makes "
            "those that are declared"
        )
    if as_json:
        print_json([asdict(entry) for entry in broker_topics])
    elif topic is None:
        print_table(
            ("topic", "partitions", "replicas", "retention", "records"),
            [
                (
                    broker_topic.name,
                    len(broker_topic.partitions),
                    broker_topic.replicas,
                    _format_retention(broker_topic),
                    f"{broker_topic.record_count:,}",
                )
                for broker_topic in broker_topics
            ],
            empty="no topics yet: `penstock topics apply` makes those that are declared",
        )
    else:
        (topic_contents,) = broker_topics
        rows = [
            (entry.partition, entry.start_offset, entry.end_offset, f"{entry.record_count:,}")
            for entry in topic_contents.partitions
        ]
        print_table(("partition", "first offset", "next offset", "records"), rows)


def _format_retention(topic: "TopicDescription") -> str:
    """Say how long records stay."""
    if topic.is_compacted:
        return "the last of each key"
    return "for ever" if topic.retention_ms < 0 else f"{topic.retention_ms / 86_400_000:g} days"


@command.command(
    epilog=format_examples("penstock topics plan", "penstock topics plan --environment production --json")
)
@_environment
@_destroy
@_json
def plan(environment: str | None, destroy: tuple[str, ...], as_json: bool) -> int:
    """Show what would be changed; ends with 1 when anything would be.

    A contract that its registered versions forbid is refused, with the field and the rule that it breaks.
    """
    differences = _compare_topics(current_settings(), environment, destroy)
    _print_differences(
        differences, differences.topic_plan.changes, as_json, "topics and schemas are as declared"
    )
    return (
        1
        if differences.topic_plan.changes or differences.schema_versions or differences.contract_errors
        else 0
    )


@command.command(
    epilog=format_examples("penstock topics apply", "penstock topics apply --allow-destroy old_topic")
)
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
    from penstock.ingestion.topics import apply_topic_plan
    from penstock.platform.services.schema_registry import open_schema_registry

    settings = current_settings()
    differences = _compare_topics(settings, environment, destroy)
    applied = apply_topic_plan(
        settings.kafka.bootstrap_servers,
        differences.topic_plan,
        destroy,
        settings.kafka.client_config("topics"),
    )
    for topic in differences.schema_versions:
        register_contract(open_schema_registry(settings), load_contract(topic))
    _print_differences(differences, applied, as_json, "nothing to do: topics and schemas are as declared")
    return 1 if differences.contract_errors else 0


def _compare_topics(
    settings: Settings, environment: str | None, destroy: tuple[str, ...]
) -> TopicDifferences:
    from penstock.ingestion.contracts import load_catalog, load_contract
    from penstock.ingestion.registry import check_registration
    from penstock.ingestion.topics import plan_cluster_changes
    from penstock.platform.services.schema_registry import open_schema_registry

    kafka, registry, contract_catalog = settings.kafka, open_schema_registry(settings), load_catalog()
    for topic in destroy:
        if topic in contract_catalog.errors_by_topic:
            load_contract(topic)  # what cannot be read is declared all the same, and says so
    versions = {
        contract.topic: check_registration(registry, contract) for contract in contract_catalog.contracts
    }
    layout = environment or kafka.layout
    with StepPrinter().step(f"compared with the broker at {kafka.bootstrap_servers}"):
        topics = plan_cluster_changes(
            kafka.bootstrap_servers,
            contract_catalog.contracts,
            layout,
            destroy,
            kafka.client_config("topics"),
        )
    broken_topics = {
        name for topic in contract_catalog.errors_by_topic for name in (topic, f"{topic}.dead-letters")
    }
    undeclared = tuple(name for name in topics.undeclared if name not in broken_topics)
    return TopicDifferences(
        replace(topics, undeclared=undeclared),
        {topic: version for topic, version in versions.items() if version is not None},
        {topic: str(error) for topic, error in contract_catalog.errors_by_topic.items()},
    )


def _print_differences(
    differences: TopicDifferences, changes: "tuple[TopicChange, ...]", as_json: bool, empty_text: str
) -> None:
    undeclared = differences.topic_plan.undeclared
    if as_json:
        change_list = [asdict(change) for change in changes]
        output = {"changes": change_list, "schemas": differences.schema_versions, "undeclared": undeclared}
        print_json({**output, "broken": differences.contract_errors})
        return
    rows: list[tuple[str, str, str, str]]
    rows = [
        (change.action, change.topic, _describe_change(change), change.data_loss or "") for change in changes
    ]
    rows += [
        ("register", topic, f"schema version {version}", "")
        for topic, version in differences.schema_versions.items()
    ]
    print_table(("action", "topic", "change", "destroys"), rows, empty=empty_text)
    if undeclared:
        click.echo(f"not declared, left alone: {', '.join(undeclared)}")
    for topic, message in differences.contract_errors.items():
        click.echo(f"{topic} is left alone until its contract is mended: {message}", err=True)


def _describe_change(change: "TopicChange") -> str:
    if change.action == "create" and change.target_spec:
        replicas_text = f", {change.target_spec.replicas} copies" if change.target_spec.replicas > 1 else ""
        return f"{change.target_spec.partitions} partitions{replicas_text}"
    return ", ".join(f"{name}: {before} -> {after}" for name, before, after in change.differences)
