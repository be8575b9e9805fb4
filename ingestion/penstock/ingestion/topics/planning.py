"""Plans the changes of topics, without access to a cluster."""

from collections.abc import Collection, Iterable, Mapping

from penstock.ingestion.topics.topic_specs import RESET_TO_DEFAULT, TopicChange, TopicPlan, TopicSpec

# The values that brokers use for a topic without an override, unless they are configured otherwise.
_BROKER_DEFAULTS = {"cleanup.policy": "delete", "retention.ms": "604800000"}


def plan_topics(
    specs: Iterable[TopicSpec], existing: Mapping[str, TopicSpec], allow_destroy: Collection[str] = ()
) -> TopicPlan:
    """Return the changes that turn the existing topics into the declared ones.

    An undeclared topic is listed and left unchanged, unless its name is in `allow_destroy`; then the plan deletes
    it.
    """
    changes: list[TopicChange] = []
    declared_names = set()
    for spec in specs:
        declared_names.add(spec.name)
        changes += _plan_topic_changes(spec, existing.get(spec.name))
    undeclared = tuple(sorted(existing.keys() - declared_names))
    changes += [
        TopicChange(
            "delete", name, None, data_loss="the topic, which no contract declares, and all its records"
        )
        for name in undeclared
        if name in allow_destroy
    ]
    return TopicPlan(tuple(changes), tuple(name for name in undeclared if name not in allow_destroy))


def _plan_topic_changes(spec: TopicSpec, existing: TopicSpec | None) -> list[TopicChange]:
    if existing is None:
        return [TopicChange("create", spec.name, spec)]
    if spec.partitions < existing.partitions or spec.replicas != existing.replicas:
        return [_plan_recreation(spec, existing)]
    changes = []
    if spec.partitions > existing.partitions:
        changes.append(TopicChange("grow", spec.name, spec, (_partition_difference(spec, existing),)))
    if differences := _diff_settings(spec, existing):
        changes.append(
            TopicChange("configure", spec.name, spec, differences, _describe_data_loss(differences))
        )
    return changes


def _plan_recreation(spec: TopicSpec, existing: TopicSpec) -> TopicChange:
    differences = _diff_settings(spec, existing)
    if spec.replicas != existing.replicas:
        differences = (("replicas", str(existing.replicas), str(spec.replicas)), *differences)
    if spec.partitions != existing.partitions:
        differences = (_partition_difference(spec, existing), *differences)
    return TopicChange(
        "recreate", spec.name, spec, differences, "all records: the topic is deleted and created again"
    )


def _partition_difference(spec: TopicSpec, existing: TopicSpec) -> tuple[str, str, str]:
    return ("partitions", str(existing.partitions), str(spec.partitions))


def _diff_settings(spec: TopicSpec, existing: TopicSpec) -> tuple[tuple[str, str, str], ...]:
    before, wanted_settings = dict(existing.settings), dict(spec.settings)
    changed_settings = tuple(
        (key, before.get(key, ""), value)
        for key, value in wanted_settings.items()
        if before.get(key) != value
    )
    removed_overrides = tuple(
        (key, value, RESET_TO_DEFAULT) for key, value in existing.overrides if key not in wanted_settings
    )
    return changed_settings + removed_overrides


def _describe_data_loss(differences: tuple[tuple[str, str, str], ...]) -> str | None:
    for setting, before, new_value in differences:
        after = _BROKER_DEFAULTS.get(setting, "") if new_value == RESET_TO_DEFAULT else new_value
        if setting in ("retention.ms", "retention.bytes") and _is_shorter_retention(before, after):
            return f"records beyond the shorter {setting}"
        if setting == "cleanup.policy" and "compact" in after and "compact" not in before:
            return "all but the last record of each key"
        if setting == "cleanup.policy" and "delete" in after and "delete" not in before:
            return "records older than the retention"
    return None


def _is_shorter_retention(before: str, after: str) -> bool:
    unlimited = {"", "-1"}
    return after not in unlimited and (before in unlimited or int(after) < int(before))
