"""Deletes a topic of the broker that no contract declares and no stream uses."""

from collections.abc import Iterator

from penstock.core.names import explain_unknown_name
from penstock.engine.archive.archive_names import archive_name, records_path
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.storage.file_access import is_delta_table
from penstock.ingestion.consumers import list_topic_groups
from penstock.ingestion.contracts import dead_letter_topic, list_contract_names
from penstock.ingestion.errors import ConsumerGroupError
from penstock.ingestion.topics import apply_topic_plan, describe_topics, plan_cluster_changes
from penstock.ingestion.topics.topic_specs import TopicPlan
from penstock.pipelines.table_claims import list_pipeline_outputs
from penstock.platform.control import ControlStore
from penstock.platform.errors import UnknownTopicError
from penstock.platform.services.dependents import list_all_plans
from penstock.platform.services.removal import RemovalPlan, RemovedItem
from penstock.platform.services.stream_lifecycle import has_live_lease
from penstock.platform.settings import Settings


def plan_topic_delete(settings: Settings, store: ControlStore, topic: str) -> RemovalPlan:
    """Return what deleting a topic would remove, and what prevents it. Raises UnknownTopicError."""
    kafka = settings.kafka
    descriptions = {
        entry.name: entry for entry in describe_topics(kafka.bootstrap_servers, kafka.client_config("topics"))
    }
    if topic not in descriptions:
        raise UnknownTopicError(explain_unknown_name("topic", topic, descriptions, "penstock topics list"))
    item = RemovedItem("topic", topic, descriptions[topic].record_count)
    remarks = []
    if is_delta_table(settings.warehouse_path / records_path(topic)):
        remarks.append(f"its archive {records_path(topic)} stays")
    remarks += _describe_groups(settings, topic)
    return RemovalPlan(f"topic {topic}", [item], tuple(_find_blockers(settings, store, topic)), remarks)


def delete_topic(settings: Settings, store: ControlStore, topic: str) -> None:
    """Delete a topic as planned. Raises RemovalError if something prevents it now."""
    plan_topic_delete(settings, store, topic).refuse_if_blocked()
    bootstrap, client = settings.kafka.bootstrap_servers, settings.kafka.client_config("topics")
    plan = plan_cluster_changes(bootstrap, [], allow_destroy=[topic], client_settings=client)
    deletion = TopicPlan(tuple(change for change in plan.changes if change.topic == topic))
    apply_topic_plan(bootstrap, deletion, [topic], client)


def _describe_groups(settings: Settings, topic: str) -> Iterator[str]:
    """Yield a sentence for each consumer group with offsets of the topic; a reader with members loses its input."""
    kafka = settings.kafka
    try:
        groups = list_topic_groups(kafka.bootstrap_servers, topic, kafka.client_config("topics"))
    except ConsumerGroupError as error:
        yield f"its consumer groups are not known. {error}"
        return
    yield from (f"consumer group {group}" for group in groups)
    if not groups:
        yield "no consumer group has offsets of it"


def _find_blockers(settings: Settings, store: ControlStore, topic: str) -> Iterator[str]:
    for declared in list_contract_names():
        if topic in (declared, dead_letter_topic(declared)):
            yield f"the contract {declared}.yaml declares it, and `penstock topics apply` would create it again"
    for plan in list_all_plans(settings):
        if topic in {topic_of(source) for source in plan.sources}:
            yield f"pipeline {plan.name} reads it"
        if topic in {output.name for output in list_pipeline_outputs(plan) if output.keyword == "publish"}:
            yield f"pipeline {plan.name} publishes to it"
    if has_live_lease(store, archive_name(topic)):
        yield f"it is archived now. Stop that: `penstock stream drain {archive_name(topic)}`"
