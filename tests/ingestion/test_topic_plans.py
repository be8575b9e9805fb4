import dataclasses
from typing import Any

import pytest

from penstock.ingestion.contracts import load_contract
from penstock.ingestion.topics import TopicSpec, declared, plan_topics
from penstock.ingestion.topics.model import TO_DEFAULT

DECLARED = declared([load_contract("sensors")])
THERE = {spec.name: spec for spec in DECLARED}


def changed(**changes: object) -> dict[str, TopicSpec]:
    base = THERE["sensors"]
    values: dict[str, Any] = {"name": base.name, "partitions": base.partitions, "replicas": base.replicas}
    values |= changes
    settings = dict(base.settings) | values.pop("settings", {})
    return THERE | {"sensors": TopicSpec(settings=tuple(sorted(settings.items())), **values)}


def test_each_contract_declares_its_topic_and_its_dead_letters():
    assert [spec.name for spec in DECLARED] == ["sensors", "sensors.dead-letters"]


@pytest.mark.parametrize(("max_bytes", "taken"), [(900_000, 1_048_588), (5_000_000, 5_001_024)])
def test_a_topic_takes_what_its_contract_lets_pass(max_bytes: int, taken: int):
    topic, _ = declared([dataclasses.replace(load_contract("sensors"), max_bytes=max_bytes)])
    assert dict(topic.settings)["max.message.bytes"] == str(taken)


def test_a_cluster_that_is_as_declared_needs_nothing():
    assert plan_topics(DECLARED, THERE).changes == ()


def test_an_empty_cluster_gets_every_topic():
    assert [change.action for change in plan_topics(DECLARED, {}).changes] == ["create", "create"]


@pytest.mark.parametrize(
    ("found", "action", "destroys"),
    [
        (changed(partitions=1), "grow", False),
        (changed(partitions=9), "recreate", True),
        (changed(replicas=2), "recreate", True),
        (changed(settings={"retention.ms": "1000"}), "configure", False),
        (changed(settings={"retention.ms": "-1"}), "configure", True),
        (changed(settings={"retention.ms": "99999999999"}), "configure", True),
        (changed(settings={"cleanup.policy": "compact"}), "configure", True),
    ],
)
def test_a_step_that_loses_records_is_marked(found: dict[str, TopicSpec], action: str, destroys: bool):
    (change,) = plan_topics(DECLARED, found).changes
    assert (change.action, change.destroys is not None) == (action, destroys)


def test_an_undeclared_topic_is_listed_and_only_deleted_by_name():
    found = THERE | {"old": TopicSpec("old", 1, 1, ())}
    assert plan_topics(DECLARED, found).undeclared == ("old",)
    plan = plan_topics(DECLARED, found, destroy=["old"])
    assert [(change.action, change.topic) for change in plan.destructive] == [("delete", "old")]


@pytest.mark.parametrize(
    ("topic", "override", "destroys"),
    [
        ("sensors", ("segment.ms", "1"), False),
        ("sensors", ("retention.bytes", "1000"), False),
        ("sensors.dead-letters", ("cleanup.policy", "compact"), True),
    ],
)
def test_what_is_set_on_a_topic_and_not_declared_goes_back_to_the_default(
    topic: str, override: tuple[str, str], destroys: bool
):
    spec = THERE[topic]
    found = THERE | {topic: dataclasses.replace(spec, overrides=(override, *spec.settings))}
    (change,) = plan_topics(DECLARED, found).changes
    assert (change.action, change.topic) == ("configure", topic)
    assert change.differences == ((*override, TO_DEFAULT),)
    assert (change.destroys is not None) == destroys
