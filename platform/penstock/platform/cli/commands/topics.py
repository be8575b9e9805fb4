"""`penstock topics`: compare topics and schemas with the contracts, and apply the changes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click

from penstock.core.names import explain_unknown_name
from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import json_option
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.cli.steps import StepPrinter
from penstock.platform.cli.topics_delete import delete
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from penstock.ingestion.topics import TopicChange, TopicDescription, TopicPlan

SECTION: Section = "Topics"


@click.group(
    name="topics",
    short_help="Compare topics with their contracts and apply changes",
    epilog=format_examples("penstock topics list", "penstock topics plan", "penstock topics apply"),
)
def command() -> None:
    """List topics, compare topics and schemas with the contracts, and apply the changes."""


def _check_environment(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    """Refuse an environment that no contract declares."""
    from penstock.ingestion.contracts import load_catalog
    from penstock.ingestion.topics import list_environments

    if name is not None and name not in (known_environments := list_environments(load_catalog().contracts)):
        raise click.BadParameter(explain_unknown_name("environment", name, known_environments))
    return name


_environment = click.option(
    "--environment",
    callback=_check_environment,
    help="Environment whose topic layout applies. Default: the one in the settings.",
)
_destroy = click.option(
    "--allow-destroy",
    "destroy",
    multiple=True,
    metavar="TOPIC",
    help="Allow changes that delete records of this topic; repeatable.",
)


@dataclass(frozen=True)
class TopicDifferences:
    """The differences between contracts and cluster: topic changes, and new schema versions by topic.

    A topic with an invalid contract is not compared; `contract_errors` has the reason.
    """

    topic_plan: "TopicPlan"
    schema_versions: Mapping[str, int]
    contract_errors: Mapping[str, str]


@command.command(
    name="list",
    short_help="List the broker's topics, or a topic's partitions",
    epilog=format_examples("penstock topics list", "penstock topics list sensors"),
)
@click.argument("topic", required=False)
@json_option
def list_topics(topic: str | None, as_json: bool) -> None:
    """List the broker's topics with partitions, replicas, retention and record counts.

    With a TOPIC, list its partitions with their first and next offsets.
    """
    from penstock.ingestion.topics import describe_topics
    from penstock.platform.errors import UnknownTopicError

    settings = current_settings()
    broker_topics = describe_topics(settings.kafka.bootstrap_servers, settings.kafka.client_config("topics"))
    if topic is not None:
        existing_names = [entry.name for entry in broker_topics]
        if topic not in existing_names:
            raise UnknownTopicError(
                f"{explain_unknown_name('topic', topic, existing_names, 'penstock topics list')} (broker: "
                f"{settings.kafka.bootstrap_servers}; `penstock topics apply` creates declared topics)"
            )
        broker_topics = tuple(entry for entry in broker_topics if entry.name == topic)
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
            empty="no topics yet; create the declared ones with `penstock topics apply`",
        )
    else:
        (topic_contents,) = broker_topics
        rows = [
            (entry.partition, entry.start_offset, entry.end_offset, f"{entry.record_count:,}")
            for entry in topic_contents.partitions
        ]
        print_table(("partition", "first offset", "next offset", "records"), rows)


def _format_retention(topic: "TopicDescription") -> str:
    """Format the retention of a topic."""
    if topic.is_compacted:
        return "compacted"
    return "unlimited" if topic.retention_ms < 0 else f"{topic.retention_ms / 86_400_000:g} days"


@command.command(
    short_help="Show the changes that an apply would make",
    epilog=format_examples("penstock topics plan", "penstock topics plan --environment production --json"),
)
@_environment
@_destroy
@json_option
def plan(environment: str | None, destroy: tuple[str, ...], as_json: bool) -> int:
    """Show the changes that an apply would make. The exit code is 1 if there are any.

    A contract that is incompatible with its registered versions is refused, with the field and the rule.
    """
    differences = _compare_topics(current_settings(), environment, destroy)
    _print_differences(
        differences,
        differences.topic_plan.changes,
        as_json,
        "no changes: topics and schemas match their contracts",
    )
    return (
        1
        if differences.topic_plan.changes or differences.schema_versions or differences.contract_errors
        else 0
    )


@command.command(
    short_help="Create and change topics, and register schemas",
    epilog=format_examples("penstock topics apply", "penstock topics apply --allow-destroy old_topic"),
)
@_environment
@_destroy
@json_option
def apply(environment: str | None, destroy: tuple[str, ...], as_json: bool) -> int:
    """Create and change topics as declared, and register their schemas.

    If a change would delete records and --allow-destroy does not name its topic, the command refuses and changes
    nothing. The exit code is 1 if a contract is invalid; its topic is not changed.
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
    _print_differences(differences, applied, as_json, "no changes: topics and schemas match their contracts")
    return 1 if differences.contract_errors else 0


def _compare_topics(
    settings: Settings, environment: str | None, destroy: tuple[str, ...]
) -> TopicDifferences:
    from penstock.ingestion.contracts import load_catalog, load_contract
    from penstock.ingestion.registry import check_registration
    from penstock.ingestion.topics import plan_cluster_changes
    from penstock.platform.errors import UnknownTopicError
    from penstock.platform.services.schema_registry import open_schema_registry

    kafka, registry, contract_catalog = settings.kafka, open_schema_registry(settings), load_catalog()
    for topic in destroy:
        if topic in contract_catalog.errors_by_topic:
            load_contract(topic)  # raises the contract's own error
    versions = {
        contract.topic: check_registration(registry, contract) for contract in contract_catalog.contracts
    }
    layout = environment or kafka.layout
    with StepPrinter().step(f"compare with the broker at {kafka.bootstrap_servers}"):
        topics = plan_cluster_changes(
            kafka.bootstrap_servers,
            contract_catalog.contracts,
            layout,
            destroy,
            kafka.client_config("topics"),
        )
    known_topics = {
        *(
            name
            for contract in contract_catalog.contracts
            for name in (contract.topic, contract.dead_letter_topic)
        ),
        *(change.topic for change in topics.changes),
        *topics.undeclared,
    }
    for topic in destroy:
        if topic not in known_topics:
            raise UnknownTopicError(
                explain_unknown_name("topic", topic, known_topics, "penstock topics list")
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
        print_json({**output, "contract_errors": differences.contract_errors})
        return
    for topic, message in differences.contract_errors.items():
        click.secho(f"{topic} is skipped until its contract is fixed: {message}", fg="red", err=True)
    if differences.contract_errors:
        empty_text = "no changes for the topics with a valid contract"
    rows: list[tuple[str, str, str, str]]
    rows = [
        (change.action, change.topic, _describe_change(change), change.data_loss or "") for change in changes
    ]
    rows += [
        ("register", topic, f"schema version {version}", "")
        for topic, version in differences.schema_versions.items()
    ]
    print_table(("action", "topic", "change", "data loss"), rows, empty=empty_text)
    if undeclared:
        click.echo(f"not declared, unchanged: {', '.join(undeclared)}")


def _describe_change(change: "TopicChange") -> str:
    if change.action == "create" and change.target_spec:
        replicas_text = f", {change.target_spec.replicas} replicas" if change.target_spec.replicas > 1 else ""
        return f"{change.target_spec.partitions} partitions{replicas_text}"
    return ", ".join(f"{name}: {before} -> {after}" for name, before, after in change.differences)


command.add_command(delete)
