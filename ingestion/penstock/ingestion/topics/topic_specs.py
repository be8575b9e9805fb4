"""Topics as data: what is declared, what the cluster has, and the steps from one to the other."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from penstock.ingestion.contracts import Contract, TopicLayout

# Room for the original bytes of a record that was refused for being too large.
MAX_DEAD_LETTER_BYTES = 33_554_432
# Kafka's own default, which also holds what the producer sends together.
_MIN_MAX_MESSAGE_BYTES = 1_048_588
# Of a record that is sent alone: what its batch says beside key and value.
_BATCH_OVERHEAD_BYTES = 1_024
# What a setting becomes that is set by hand, or was declared once: whatever the brokers do without.
RESET_TO_DEFAULT = "(the brokers' default)"
TopicAction = Literal["create", "grow", "configure", "recreate", "delete"]


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """One topic: as it is declared, or as the cluster has it.

    Of a cluster's topic `overrides` are the settings that somebody has given to this topic, whoever that was.
    """

    name: str
    partitions: int
    replicas: int
    settings: tuple[tuple[str, str], ...]
    overrides: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TopicChange:
    """One step, what it changes (setting, before, after), and what it would destroy, if anything."""

    action: TopicAction
    topic: str
    target_spec: TopicSpec | None
    differences: tuple[tuple[str, str, str], ...] = ()
    data_loss: str | None = None


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The steps that make the cluster as declared, and the topics that nobody declared."""

    changes: tuple[TopicChange, ...]
    undeclared: tuple[str, ...] = ()

    @property
    def destructive_changes(self) -> tuple[TopicChange, ...]:
        """The steps that need their topic's name in `--allow-destroy`."""
        return tuple(change for change in self.changes if change.data_loss is not None)


def build_topic_specs(contracts: Iterable[Contract], environment: str = "local") -> tuple[TopicSpec, ...]:
    """Return the topics of the contracts in an environment, each with its dead-letter topic."""
    specs: list[TopicSpec] = []
    for contract in contracts:
        layout = contract.layout_for(environment)
        specs += [_record_topic_spec(contract, layout), _dead_letter_topic_spec(contract, layout)]
    return tuple(specs)


def list_environments(contracts: Iterable[Contract]) -> tuple[str, ...]:
    """Return the environments for which some contract declares a layout of its own, and `local`."""
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
