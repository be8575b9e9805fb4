"""Reading and changing a cluster's topics."""

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

from penstock.ingestion.clients import PLAIN, ClientSettings, admin_client, said
from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import TopicsError
from penstock.ingestion.topics.model import TO_DEFAULT, Change, TopicPlan, TopicSpec, declared
from penstock.ingestion.topics.planning import plan_topics

_SECONDS = 30.0
# Who only looks is told sooner that nobody answers.
_LOOK_SECONDS = 15.0
_VISIBLE_ROUNDS = 600


def observe(
    bootstrap: str,
    settings: Iterable[str] = (),
    seconds: float = _LOOK_SECONDS,
    client: ClientSettings = PLAIN,
) -> dict[str, TopicSpec]:
    """Return the cluster's topics, internal ones left out, with the values of the settings asked for.

    Where any are asked for, it tells also what is set on the topics themselves.
    """
    admin = admin_client(bootstrap, client)
    try:
        found = admin.list_topics(timeout=seconds).topics
        names = [name for name in found if not name.startswith("__")]
        asked = set(settings)
        found_settings = _settings(admin, names if asked else [])
    except KafkaException as error:
        raise TopicsError(
            f"the topics at {bootstrap} cannot be read: {said(error)}; is the broker up?"
        ) from error
    return {
        name: TopicSpec(
            name,
            len(found[name].partitions),
            len(found[name].partitions[0].replicas),
            _values(found_settings.get(name, {}), lambda entry: entry.name in asked),
            _values(found_settings.get(name, {}), _is_override),
        )
        for name in names
    }


def plan_for(
    bootstrap: str,
    contracts: Iterable[Contract],
    environment: str = "local",
    destroy: Collection[str] = (),
    client: ClientSettings = PLAIN,
    seconds: float = _LOOK_SECONDS,
) -> TopicPlan:
    """Compare the cluster with what the contracts declare for an environment."""
    wanted = declared(contracts, environment)
    settings = {key for spec in wanted for key, _ in spec.settings}
    return plan_topics(wanted, observe(bootstrap, settings, seconds, client), destroy)


def apply_plan(
    bootstrap: str, plan: TopicPlan, destroy: Collection[str] = (), client: ClientSettings = PLAIN
) -> tuple[Change, ...]:
    """Carry out a plan and return what was done.

    Refuses the whole plan, before its first step, when one step would destroy records of a topic that is not
    named in `destroy`.
    """
    for change in plan.destructive:
        if change.topic not in destroy:
            raise TopicsError(
                f"topic {change.topic}: to {change.action} it would destroy {change.destroys}; "
                f"nothing was changed; say --allow-destroy {change.topic} if that is wanted"
            )
    admin = admin_client(bootstrap, client)
    for change in plan.changes:
        try:
            _carry_out(admin, change)
        except KafkaException as error:
            raise TopicsError(
                f"topic {change.topic} at {bootstrap}: to {change.action} it failed: {said(error)}"
            ) from error
    return plan.changes


def ensure_topics(
    bootstrap: str,
    contracts: Iterable[Contract],
    environment: str = "local",
    client: ClientSettings = PLAIN,
) -> tuple[Change, ...]:
    """Create what is missing and change what can be changed without loss; said again, it changes nothing.

    Steps that would destroy records are left out: `penstock topics plan` shows them.
    """
    plan = plan_for(bootstrap, contracts, environment, client=client)
    harmless = TopicPlan(tuple(change for change in plan.changes if change.destroys is None))
    return apply_plan(bootstrap, harmless, client=client)


def _settings(admin: AdminClient, names: list[str]) -> dict[str, dict[str, ConfigEntry]]:
    if not names:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    described = admin.describe_configs(resources, request_timeout=_SECONDS)
    return {resource.name: _wait(future) for resource, future in described.items()}


def _values(
    entries: dict[str, ConfigEntry], wanted: Callable[[ConfigEntry], bool]
) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, str(entry.value)) for key, entry in entries.items() if wanted(entry)))


def _is_override(entry: ConfigEntry) -> bool:
    """Say whether it is set on the topic; what tools set while they move replicas is theirs."""
    found = ConfigSource(entry.source) == ConfigSource.DYNAMIC_TOPIC_CONFIG
    return found and not entry.name.endswith("replication.throttled.replicas")


def _carry_out(admin: AdminClient, change: Change) -> None:
    if change.action in ("delete", "recreate"):
        _wait_all(admin.delete_topics([change.topic], operation_timeout=_SECONDS))
    if change.after is None:
        return
    if change.action in ("create", "recreate"):
        _create(admin, change.after, patient=change.action == "recreate")
    elif change.action == "grow":
        _wait_all(admin.create_partitions([NewPartitions(change.topic, change.after.partitions)]))
    else:
        entries = [_altered(key, after) for key, _, after in change.differences]
        resource = ConfigResource(ResourceType.TOPIC, change.topic, incremental_configs=entries)
        _wait_all(admin.incremental_alter_configs([resource]))


def _altered(key: str, after: str) -> ConfigEntry:
    if after == TO_DEFAULT:
        return ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)
    return ConfigEntry(key, after, incremental_operation=AlterConfigOpType.SET)


def _create(admin: AdminClient, spec: TopicSpec, *, patient: bool) -> None:
    topic = NewTopic(spec.name, spec.partitions, spec.replicas, config=dict(spec.settings))
    for left in range(50 if patient else 1, 0, -1):
        try:
            _wait_all(admin.create_topics([topic], operation_timeout=_SECONDS))
            _wait_until_visible(admin, spec)
            return
        except KafkaException as error:
            # Deletion is done in the background: for a moment the old topic is still in the way.
            if not patient or left == 1 or error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise
            admin.poll(0.1)


def _wait_until_visible(admin: AdminClient, spec: TopicSpec) -> None:
    """Brokers learn of a topic a moment after the controller has made it."""
    for _ in range(_VISIBLE_ROUNDS):
        found = admin.list_topics(spec.name, timeout=_SECONDS).topics[spec.name]
        leaders = [partition.leader for partition in found.partitions.values() if partition.leader >= 0]
        if len(leaders) == spec.partitions:
            return
        admin.poll(0.05)
    raise TopicsError(f"topic {spec.name} was made and no broker serves it yet; look at the brokers' logs")


def _wait_all(futures: dict[Any, Future[Any]]) -> None:
    for future in futures.values():
        _wait(future)


def _wait(future: Future[Any]) -> Any:
    return future.result(timeout=_SECONDS * 2)
