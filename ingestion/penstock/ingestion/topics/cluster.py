"""Reads and changes the topics of a cluster."""

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from penstock.core.kafka_client import (
    PLAINTEXT_CLIENT,
    KafkaClientSettings,
    create_admin_client,
    describe_kafka_error,
)
from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import TopicAdminError
from penstock.ingestion.topics.planning import plan_topics
from penstock.ingestion.topics.topic_specs import (
    RESET_TO_DEFAULT,
    TopicChange,
    TopicPlan,
    TopicSpec,
    build_topic_specs,
)

_ADMIN_TIMEOUT_S = 30.0
# A read fails sooner than a change, so that a command reports a missing broker quickly.
_READ_TIMEOUT_S = 15.0
_MAX_VISIBILITY_POLLS = 600


def read_cluster_topics(
    bootstrap: str,
    settings: Iterable[str] = (),
    timeout_s: float = _READ_TIMEOUT_S,
    client_settings: KafkaClientSettings = PLAINTEXT_CLIENT,
) -> dict[str, TopicSpec]:
    """Return the topics of the cluster, without internal ones, and the values of the requested settings.

    If any setting is requested, the result also contains the overrides of each topic.
    """
    admin = create_admin_client(bootstrap, client_settings)
    try:
        topics = admin.list_topics(timeout=timeout_s).topics
        names = [name for name in topics if not name.startswith("__")]
        wanted_settings = set(settings)
        configs_by_topic = _read_topic_configs(admin, names if wanted_settings else [])
    except KafkaException as error:
        raise TopicAdminError(
            f"Cannot read the topics at {bootstrap}: {describe_kafka_error(error)}. Check that the broker is up."
        ) from error
    return {
        name: TopicSpec(
            name,
            len(topics[name].partitions),
            len(topics[name].partitions[0].replicas),
            _select_values(configs_by_topic.get(name, {}), lambda entry: entry.name in wanted_settings),
            _select_values(configs_by_topic.get(name, {}), _is_override),
        )
        for name in names
    }


def plan_cluster_changes(
    bootstrap: str,
    contracts: Iterable[Contract],
    environment: str = "local",
    allow_destroy: Collection[str] = (),
    client_settings: KafkaClientSettings = PLAINTEXT_CLIENT,
    timeout_s: float = _READ_TIMEOUT_S,
) -> TopicPlan:
    """Compare the cluster with the topics that the contracts declare for an environment."""
    specs = build_topic_specs(contracts, environment)
    settings = {key for spec in specs for key, _ in spec.settings}
    return plan_topics(
        specs, read_cluster_topics(bootstrap, settings, timeout_s, client_settings), allow_destroy
    )


def apply_topic_plan(
    bootstrap: str,
    plan: TopicPlan,
    allow_destroy: Collection[str] = (),
    client_settings: KafkaClientSettings = PLAINTEXT_CLIENT,
) -> tuple[TopicChange, ...]:
    """Apply a plan and return the applied changes.

    Raises TopicAdminError before the first change if a change would destroy records of a topic that is not in
    `allow_destroy`.
    """
    for change in plan.destructive_changes:
        if change.topic not in allow_destroy:
            raise TopicAdminError(
                f"Topic {change.topic}: '{change.action}' would destroy {change.data_loss}. No topic was changed. "
                f"Use --allow-destroy {change.topic} to allow it."
            )
    admin = create_admin_client(bootstrap, client_settings)
    for change in plan.changes:
        try:
            _apply_change(admin, change)
        except KafkaException as error:
            raise TopicAdminError(
                f"Topic {change.topic} at {bootstrap}: '{change.action}' failed: {describe_kafka_error(error)}"
            ) from error
    return plan.changes


def ensure_topics(
    bootstrap: str,
    contracts: Iterable[Contract],
    environment: str = "local",
    client_settings: KafkaClientSettings = PLAINTEXT_CLIENT,
) -> tuple[TopicChange, ...]:
    """Create missing topics and apply lossless changes; a second call changes nothing.

    Changes that would destroy records are skipped. `penstock topics plan` lists them.
    """
    plan = plan_cluster_changes(bootstrap, contracts, environment, client_settings=client_settings)
    lossless_plan = TopicPlan(tuple(change for change in plan.changes if change.data_loss is None))
    return apply_topic_plan(bootstrap, lossless_plan, client_settings=client_settings)


def _read_topic_configs(admin: AdminClient, names: list[str]) -> dict[str, dict[str, ConfigEntry]]:
    if not names:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    futures_by_resource = admin.describe_configs(resources, request_timeout=_ADMIN_TIMEOUT_S)
    return {resource.name: _await_result(future) for resource, future in futures_by_resource.items()}


def _select_values(
    entries: dict[str, ConfigEntry], is_selected: Callable[[ConfigEntry], bool]
) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, str(entry.value)) for key, entry in entries.items() if is_selected(entry)))


def _is_override(entry: ConfigEntry) -> bool:
    """Return whether a value is set on the topic; throttles that tools set to move replicas do not count."""
    is_topic_config = ConfigSource(entry.source) == ConfigSource.DYNAMIC_TOPIC_CONFIG
    return is_topic_config and not entry.name.endswith("replication.throttled.replicas")


def _apply_change(admin: AdminClient, change: TopicChange) -> None:
    if change.action in ("delete", "recreate"):
        _await_all(admin.delete_topics([change.topic], operation_timeout=_ADMIN_TIMEOUT_S))
    if change.target_spec is None:
        return
    if change.action in ("create", "recreate"):
        _create_topic(admin, change.target_spec, retry_while_deleting=change.action == "recreate")
    elif change.action == "grow":
        _await_all(admin.create_partitions([NewPartitions(change.topic, change.target_spec.partitions)]))
    else:
        entries = [_to_config_entry(key, new_value) for key, _, new_value in change.differences]
        resource = ConfigResource(ResourceType.TOPIC, change.topic, incremental_configs=entries)
        _await_all(admin.incremental_alter_configs([resource]))


def _to_config_entry(key: str, new_value: str) -> ConfigEntry:
    if new_value == RESET_TO_DEFAULT:
        return ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)
    return ConfigEntry(key, new_value, incremental_operation=AlterConfigOpType.SET)


def _create_topic(admin: AdminClient, spec: TopicSpec, *, retry_while_deleting: bool) -> None:
    topic = NewTopic(spec.name, spec.partitions, spec.replicas, config=dict(spec.settings))
    for attempts_left in range(50 if retry_while_deleting else 1, 0, -1):
        try:
            _await_all(admin.create_topics([topic], operation_timeout=_ADMIN_TIMEOUT_S))
            _wait_until_visible(admin, spec)
            return
        except KafkaException as error:
            # Deletion runs in the background, so the old topic may still exist for a moment.
            if (
                not retry_while_deleting
                or attempts_left == 1
                or error.args[0].name() != "TOPIC_ALREADY_EXISTS"
            ):
                raise
            admin.poll(0.1)


def _wait_until_visible(admin: AdminClient, spec: TopicSpec) -> None:
    """Wait until brokers serve a topic that the controller has created."""
    for _ in range(_MAX_VISIBILITY_POLLS):
        metadata = admin.list_topics(spec.name, timeout=_ADMIN_TIMEOUT_S).topics[spec.name]
        leaders = [partition.leader for partition in metadata.partitions.values() if partition.leader >= 0]
        if len(leaders) == spec.partitions:
            return
        admin.poll(0.05)
    raise TopicAdminError(
        f"Topic {spec.name} was created, but no broker serves it yet. Check the logs of the brokers."
    )


def _await_all(futures: dict[Any, Future[Any]]) -> None:
    for future in futures.values():
        _await_result(future)


def _await_result(future: Future[Any]) -> Any:
    return future.result(timeout=_ADMIN_TIMEOUT_S * 2)
