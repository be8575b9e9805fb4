import dataclasses
from typing import Any

import pytest

from penstock.ingestion.contracts import load_contract
from penstock.ingestion.topics import TopicSpec, build_topic_specs, plan_topics
from penstock.ingestion.topics.topic_specs import RESET_TO_DEFAULT

DECLARED_SPECS = build_topic_specs([load_contract("sensors")])
EXISTING_SPECS = {spec.name: spec for spec in DECLARED_SPECS}


def change_spec(**changes: object) -> dict[str, TopicSpec]:
    base = EXISTING_SPECS["sensors"]
    values: dict[str, Any] = {"name": base.name, "partitions": base.partitions, "replicas": base.replicas}
    values |= changes
    settings = dict(base.settings) | values.pop("settings", {})
    return EXISTING_SPECS | {"sensors": TopicSpec(settings=tuple(sorted(settings.items())), **values)}


def test_each_contract_declares_its_topic_and_its_dead_letters():
    assert [spec.name for spec in DECLARED_SPECS] == ["sensors", "sensors.dead-letters"]


@pytest.mark.parametrize(("max_bytes", "topic_max_bytes"), [(900_000, 1_048_588), (5_000_000, 5_001_024)])
def test_a_topic_accepts_the_largest_record_of_its_contract(max_bytes: int, topic_max_bytes: int):
    topic, _ = build_topic_specs([dataclasses.replace(load_contract("sensors"), max_bytes=max_bytes)])
    assert dict(topic.settings)["max.message.bytes"] == str(topic_max_bytes)


def test_a_cluster_as_declared_needs_no_change():
    assert plan_topics(DECLARED_SPECS, EXISTING_SPECS).changes == ()


def test_every_topic_is_created_in_an_empty_cluster():
    assert [change.action for change in plan_topics(DECLARED_SPECS, {}).changes] == ["create", "create"]


@pytest.mark.parametrize(
    ("existing", "action", "destroys"),
    [
        (change_spec(partitions=1), "grow", False),
        (change_spec(partitions=9), "recreate", True),
        (change_spec(replicas=2), "recreate", True),
        (change_spec(settings={"retention.ms": "1000"}), "configure", False),
        (change_spec(settings={"retention.ms": "-1"}), "configure", True),
        (change_spec(settings={"retention.ms": "99999999999"}), "configure", True),
        (change_spec(settings={"cleanup.policy": "compact"}), "configure", True),
    ],
)
def test_a_change_that_loses_records_is_marked(existing: dict[str, TopicSpec], action: str, destroys: bool):
    (change,) = plan_topics(DECLARED_SPECS, existing).changes
    assert (change.action, change.data_loss is not None) == (action, destroys)


def test_an_undeclared_topic_is_listed_and_deleted_only_by_name():
    existing = EXISTING_SPECS | {"old": TopicSpec("old", 1, 1, ())}
    assert plan_topics(DECLARED_SPECS, existing).undeclared == ("old",)
    plan = plan_topics(DECLARED_SPECS, existing, allow_destroy=["old"])
    assert [(change.action, change.topic) for change in plan.destructive_changes] == [("delete", "old")]


@pytest.mark.parametrize(
    ("topic", "override", "destroys"),
    [
        ("sensors", ("segment.ms", "1"), False),
        ("sensors", ("retention.bytes", "1000"), False),
        ("sensors.dead-letters", ("cleanup.policy", "compact"), True),
    ],
)
def test_an_undeclared_setting_is_reset_to_its_default(topic: str, override: tuple[str, str], destroys: bool):
    spec = EXISTING_SPECS[topic]
    existing = EXISTING_SPECS | {topic: dataclasses.replace(spec, overrides=(override, *spec.settings))}
    (change,) = plan_topics(DECLARED_SPECS, existing).changes
    assert (change.action, change.topic) == ("configure", topic)
    assert change.differences == ((*override, RESET_TO_DEFAULT),)
    assert (change.data_loss is not None) == destroys
