"""Topic specifications, changes and plans, as data."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from penstock.ingestion.contracts import Contract, TopicLayout

# Large enough for the original bytes of a record that was refused because of its size.
MAX_DEAD_LETTER_BYTES = 33_554_432
# Kafka's own default, which also fits the batches that the producer sends.
_MIN_MAX_MESSAGE_BYTES = 1_048_588
# The overhead of the batch of a single record, in addition to its key and value.
_BATCH_OVERHEAD_BYTES = 1_024
# The new value of a setting that is removed from a topic: the default of the brokers.
RESET_TO_DEFAULT = "(broker default)"
TopicAction = Literal["create", "grow", "configure", "recreate", "delete"]


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """One topic, as declared or as it exists in the cluster.

    For a topic of the cluster, `overrides` are the settings that are set on the topic itself.
    """

    name: str
    partitions: int
    replicas: int
    settings: tuple[tuple[str, str], ...]
    overrides: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TopicChange:
    """One change, its differences as (setting, before, after), and the data that it would destroy, if any."""

    action: TopicAction
    topic: str
    target_spec: TopicSpec | None
    differences: tuple[tuple[str, str, str], ...] = ()
    data_loss: str | None = None


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The changes that make the cluster match the contracts, and the topics that no contract declares."""

    changes: tuple[TopicChange, ...]
    undeclared: tuple[str, ...] = ()

    @property
    def destructive_changes(self) -> tuple[TopicChange, ...]:
        """The changes that require the name of their topic in `--allow-destroy`."""
        return tuple(change for change in self.changes if change.data_loss is not None)


def build_topic_specs(contracts: Iterable[Contract], environment: str = "local") -> tuple[TopicSpec, ...]:
    """Return the topics of the contracts in an environment, each with its dead-letter topic."""
    specs: list[TopicSpec] = []
    for contract in contracts:
        layout = contract.layout_for(environment)
        specs += [_record_topic_spec(contract, layout), _dead_letter_topic_spec(contract, layout)]
    return tuple(specs)


def list_environments(contracts: Iterable[Contract]) -> tuple[str, ...]:
    """Return `local` and the environments for which a contract declares a layout."""
    return tuple(sorted({"local"} | {name for contract in contracts for name, _ in contract.environments}))


def _record_topic_spec(contract: Contract, layout: TopicLayout) -> TopicSpec:
    settings = {
        "max.message.bytes": str(max(_MIN_MAX_MESSAGE_BYTES, contract.max_bytes + _BATCH_OVERHEAD_BYTES))
    }
    settings |= dict(layout.settings) | {
        "cleanup.policy": "compact" if layout.compacted else "delete",
        "retention.ms": str(layout.retention_ms),
    }
    return TopicSpec(contract.topic, layout.partitions, layout.replicas, tuple(sorted(settings.items())))


def _dead_letter_topic_spec(contract: Contract, layout: TopicLayout) -> TopicSpec:
    settings = (("max.message.bytes", str(MAX_DEAD_LETTER_BYTES)), ("retention.ms", str(layout.retention_ms)))
    return TopicSpec(contract.dead_letter_topic, 1, layout.replicas, settings)
