import dataclasses

import pytest
from tests.ingestion.topic_reading import read_topic

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, ContractField, TopicLayout
from penstock.ingestion.errors import TopicAdminError
from penstock.ingestion.topics import (
    apply_topic_plan,
    ensure_topics,
    plan_cluster_changes,
    read_cluster_topics,
)
from penstock.ingestion.topics.topic_specs import RESET_TO_DEFAULT

pytestmark = pytest.mark.kafka


def make_contract(name: str, **layout: object) -> Contract:
    return Contract(
        name, "A topic.", (ContractField("n", "long", "A number."),), layout=TopicLayout(**layout)
    )


def plan_actions(
    broker: LocalBroker, declared: Contract, destroy: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    """List the changes that a plan has for one contract."""
    return [
        (change.action, change.topic)
        for change in plan_cluster_changes(broker.bootstrap, [declared], "local", destroy).changes
    ]


def test_a_topic_is_grown_and_configured_once(broker: LocalBroker):
    first, later = (
        make_contract("grown", partitions=2),
        make_contract("grown", partitions=5, compacted=False, retention_ms=-1),
    )
    assert plan_actions(broker, first) == [("create", "grown"), ("create", "grown.dead-letters")]
    apply_topic_plan(broker.bootstrap, plan_cluster_changes(broker.bootstrap, [first]))
    assert plan_actions(broker, first) == []
    plan = plan_cluster_changes(broker.bootstrap, [later])
    assert [change.action for change in plan.changes] == ["grow", "configure", "configure"]
    apply_topic_plan(broker.bootstrap, plan)
    assert plan_actions(broker, later) == []
    topic = read_cluster_topics(broker.bootstrap, ["retention.ms"])["grown"]
    assert (topic.partitions, topic.settings) == (5, (("retention.ms", "-1"),))


def test_a_removed_setting_is_reset_to_its_default(broker: LocalBroker):
    before = make_contract("settled", settings=(("segment.ms", "60000"), ("min.insync.replicas", "1")))
    ensure_topics(broker.bootstrap, [before])
    assert plan_actions(broker, before) == []
    after = make_contract("settled", settings=(("min.insync.replicas", "1"),))
    (change,) = plan_cluster_changes(broker.bootstrap, [after]).changes
    assert change.differences == (("segment.ms", "60000", RESET_TO_DEFAULT),)
    ensure_topics(broker.bootstrap, [after])
    assert plan_actions(broker, after) == []
    assert dict(read_cluster_topics(broker.bootstrap, ["segment.ms"])["settled"].settings) == {
        "segment.ms": "604800000"
    }


def test_a_destructive_plan_is_refused_without_the_topic_name(broker: LocalBroker):
    wide, narrow = (
        make_contract("narrowed", partitions=4),
        make_contract("narrowed", partitions=1, retention_ms=60_000),
    )
    ensure_topics(broker.bootstrap, [wide])
    ensure_topics(broker.bootstrap, [narrow])
    plan = plan_cluster_changes(broker.bootstrap, [narrow])
    with pytest.raises(TopicAdminError, match="--allow-destroy narrowed"):
        apply_topic_plan(broker.bootstrap, plan)
    assert read_cluster_topics(broker.bootstrap)["narrowed"].partitions == 4
    apply_topic_plan(broker.bootstrap, plan, allow_destroy=["narrowed", "narrowed.dead-letters"])
    assert plan_actions(broker, narrow) == []
    assert read_topic(broker.bootstrap, "narrowed") == []


def test_an_undeclared_topic_is_deleted_only_by_name(broker: LocalBroker):
    ensure_topics(broker.bootstrap, [make_contract("old"), make_contract("kept")])
    plan = plan_cluster_changes(broker.bootstrap, [make_contract("kept")], allow_destroy=["old"])
    assert [(change.action, change.topic) for change in plan.destructive_changes] == [("delete", "old")]
    assert "old.dead-letters" in plan.undeclared
    apply_topic_plan(broker.bootstrap, plan, allow_destroy=["old"])
    assert "old" not in read_cluster_topics(broker.bootstrap)


def test_ensuring_topics_again_changes_nothing(broker: LocalBroker):
    declared = make_contract("again", partitions=2)
    assert len(ensure_topics(broker.bootstrap, [declared])) == 2
    assert ensure_topics(broker.bootstrap, [declared]) == ()


def test_more_replicas_than_brokers_are_refused_with_the_topic(broker: LocalBroker):
    with pytest.raises(TopicAdminError, match="replicated"):
        ensure_topics(
            broker.bootstrap, [dataclasses.replace(make_contract("replicated"), layout=TopicLayout(1, 3))]
        )


def test_an_unreachable_broker_is_reported(unused_port: int):
    with pytest.raises(TopicAdminError, match="Check that the broker is up"):
        read_cluster_topics(f"127.0.0.1:{unused_port}", timeout_s=1.0)


@pytest.fixture
def unused_port() -> int:
    from penstock.infra.ports import find_free_ports

    return find_free_ports(1)[0]
