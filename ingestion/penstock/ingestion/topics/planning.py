"""Deciding what to change; nothing here talks to a cluster."""

from collections.abc import Collection, Iterable, Mapping

from penstock.ingestion.topics.model import TO_DEFAULT, Change, TopicPlan, TopicSpec

# What brokers do with a topic that says nothing, unless they were told otherwise.
_DEFAULTS = {"cleanup.policy": "delete", "retention.ms": "604800000"}


def plan_topics(
    wanted: Iterable[TopicSpec], existing: Mapping[str, TopicSpec], destroy: Collection[str] = ()
) -> TopicPlan:
    """Return the steps from what exists to what is wanted.

    A topic that nobody declared is left alone and listed, unless its name is in `destroy`; then it
    is deleted.
    """
    changes: list[Change] = []
    names = set()
    for spec in wanted:
        names.add(spec.name)
        changes += _steps(spec, existing.get(spec.name))
    undeclared = tuple(sorted(existing.keys() - names))
    changes += [
        Change("delete", name, None, destroys="the topic, which nobody declares, and all its records")
        for name in undeclared
        if name in destroy
    ]
    return TopicPlan(tuple(changes), tuple(name for name in undeclared if name not in destroy))


def _steps(spec: TopicSpec, found: TopicSpec | None) -> list[Change]:
    if found is None:
        return [Change("create", spec.name, spec)]
    if spec.partitions < found.partitions or spec.replicas != found.replicas:
        return [_recreate(spec, found)]
    steps = []
    if spec.partitions > found.partitions:
        steps.append(Change("grow", spec.name, spec, (_partitions(spec, found),)))
    if differences := _differences(spec, found):
        steps.append(Change("configure", spec.name, spec, differences, _lost(differences)))
    return steps


def _recreate(spec: TopicSpec, found: TopicSpec) -> Change:
    differences = _differences(spec, found)
    if spec.replicas != found.replicas:
        differences = (("replicas", str(found.replicas), str(spec.replicas)), *differences)
    if spec.partitions != found.partitions:
        differences = (_partitions(spec, found), *differences)
    return Change("recreate", spec.name, spec, differences, "all records: the topic is deleted and made anew")


def _partitions(spec: TopicSpec, found: TopicSpec) -> tuple[str, str, str]:
    return ("partitions", str(found.partitions), str(spec.partitions))


def _differences(spec: TopicSpec, found: TopicSpec) -> tuple[tuple[str, str, str], ...]:
    before, wanted = dict(found.settings), dict(spec.settings)
    set_otherwise = tuple(
        (key, before.get(key, ""), value) for key, value in wanted.items() if before.get(key) != value
    )
    set_besides = tuple((key, value, TO_DEFAULT) for key, value in found.overrides if key not in wanted)
    return set_otherwise + set_besides


def _lost(differences: tuple[tuple[str, str, str], ...]) -> str | None:
    for setting, before, told in differences:
        after = _DEFAULTS.get(setting, "") if told == TO_DEFAULT else told
        if setting in ("retention.ms", "retention.bytes") and _shorter(before, after):
            return f"records beyond the shorter {setting}"
        if setting == "cleanup.policy" and "compact" in after and "compact" not in before:
            return "all but the last record of each key"
        if setting == "cleanup.policy" and "delete" in after and "delete" not in before:
            return "records older than the retention"
    return None


def _shorter(before: str, after: str) -> bool:
    unlimited = {"", "-1"}
    return after not in unlimited and (before in unlimited or int(after) < int(before))
