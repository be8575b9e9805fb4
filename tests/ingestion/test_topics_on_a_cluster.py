import dataclasses

import pytest
from tests.ingestion.topic_reading import whole_topic

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, Field, TopicLayout
from penstock.ingestion.errors import TopicsError
from penstock.ingestion.topics import apply_plan, ensure_topics, observe, plan_for
from penstock.ingestion.topics.model import TO_DEFAULT

pytestmark = pytest.mark.kafka


def contract(name: str, **layout: object) -> Contract:
    return Contract(name, "A topic.", (Field("n", "long", "A number."),), layout=TopicLayout(**layout))


def actions(broker: LocalBroker, declared: Contract, destroy: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """What a plan would do; topics of other tests are not declared here, and left alone."""
    return [
        (change.action, change.topic)
        for change in plan_for(broker.bootstrap, [declared], "local", destroy).changes
    ]


def test_a_topic_grows_and_is_configured_and_then_nothing_is_left_to_do(broker: LocalBroker):
    first, later = (
        contract("grown", partitions=2),
        contract("grown", partitions=5, compacted=False, retention_ms=-1),
    )
    assert actions(broker, first) == [("create", "grown"), ("create", "grown.dead-letters")]
    apply_plan(broker.bootstrap, plan_for(broker.bootstrap, [first]))
    assert actions(broker, first) == []
    plan = plan_for(broker.bootstrap, [later])
    assert [change.action for change in plan.changes] == ["grow", "configure", "configure"]
    apply_plan(broker.bootstrap, plan)
    assert actions(broker, later) == []
    found = observe(broker.bootstrap, ["retention.ms"])["grown"]
    assert (found.partitions, found.settings) == (5, (("retention.ms", "-1"),))


def test_a_setting_that_is_no_longer_declared_goes_back_to_the_default(broker: LocalBroker):
    before = contract("settled", settings=(("segment.ms", "60000"), ("min.insync.replicas", "1")))
    ensure_topics(broker.bootstrap, [before])
    assert actions(broker, before) == []
    after = contract("settled", settings=(("min.insync.replicas", "1"),))
    (change,) = plan_for(broker.bootstrap, [after]).changes
    assert change.differences == (("segment.ms", "60000", TO_DEFAULT),)
    ensure_topics(broker.bootstrap, [after])
    assert actions(broker, after) == []
    assert dict(observe(broker.bootstrap, ["segment.ms"])["settled"].settings) == {"segment.ms": "604800000"}


def test_what_would_destroy_records_is_refused_whole_without_the_name(broker: LocalBroker):
    wide, narrow = contract("narrowed", partitions=4), contract("narrowed", partitions=1, retention_ms=60_000)
    ensure_topics(broker.bootstrap, [wide])
    ensure_topics(broker.bootstrap, [narrow])
    plan = plan_for(broker.bootstrap, [narrow])
    with pytest.raises(TopicsError, match="--allow-destroy narrowed"):
        apply_plan(broker.bootstrap, plan)
    assert observe(broker.bootstrap)["narrowed"].partitions == 4
    apply_plan(broker.bootstrap, plan, destroy=["narrowed", "narrowed.dead-letters"])
    assert actions(broker, narrow) == []
    assert whole_topic(broker.bootstrap, "narrowed") == []


def test_an_undeclared_topic_is_deleted_by_name_only(broker: LocalBroker):
    ensure_topics(broker.bootstrap, [contract("old"), contract("kept")])
    plan = plan_for(broker.bootstrap, [contract("kept")], destroy=["old"])
    assert [(change.action, change.topic) for change in plan.destructive] == [("delete", "old")]
    assert "old.dead-letters" in plan.undeclared
    apply_plan(broker.bootstrap, plan, destroy=["old"])
    assert "old" not in observe(broker.bootstrap)


def test_said_again_nothing_is_changed(broker: LocalBroker):
    declared = contract("again", partitions=2)
    assert len(ensure_topics(broker.bootstrap, [declared])) == 2
    assert ensure_topics(broker.bootstrap, [declared]) == ()


def test_more_replicas_than_brokers_is_said_with_the_topic(broker: LocalBroker):
    with pytest.raises(TopicsError, match="replicated"):
        ensure_topics(
            broker.bootstrap, [dataclasses.replace(contract("replicated"), layout=TopicLayout(1, 3))]
        )


def test_a_broker_that_is_not_there_is_said(unused_port: int):
    with pytest.raises(TopicsError, match="is the broker up"):
        observe(f"127.0.0.1:{unused_port}", seconds=1.0)


@pytest.fixture
def unused_port() -> int:
    from penstock.infra.ports import free_ports

    return free_ports(1)[0]
