"""Topics as data: what is declared, what the cluster has, and the steps from one to the other."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from penstock.ingestion.contracts import Contract, TopicLayout

# Room for the original bytes of a record that was refused for being too large.
DEAD_LETTER_MAX_BYTES = 33_554_432
# Kafka's own default, which also holds what the producer sends together.
_LEAST_MAX_BYTES = 1_048_588
# Of a record that is sent alone: what its batch says beside key and value.
_OVERHEAD_BYTES = 1_024
# What a setting becomes that is set by hand, or was declared once: whatever the brokers do without.
TO_DEFAULT = "(the brokers' default)"
Action = Literal["create", "grow", "configure", "recreate", "delete"]


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
class Change:
    """One step, what it changes (setting, before, after), and what it would destroy, if anything."""

    action: Action
    topic: str
    after: TopicSpec | None
    differences: tuple[tuple[str, str, str], ...] = ()
    destroys: str | None = None


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The steps that make the cluster as declared, and the topics that nobody declared."""

    changes: tuple[Change, ...]
    undeclared: tuple[str, ...] = ()

    @property
    def destructive(self) -> tuple[Change, ...]:
        """The steps that need their topic's name in `--allow-destroy`."""
        return tuple(change for change in self.changes if change.destroys is not None)


def declared(contracts: Iterable[Contract], environment: str = "local") -> tuple[TopicSpec, ...]:
    """Return the topics of the contracts in an environment, each with its dead-letter topic."""
    specs: list[TopicSpec] = []
    for contract in contracts:
        layout = contract.layout_in(environment)
        specs += [_records(contract, layout), _dead_letters(contract, layout)]
    return tuple(specs)


def environments(contracts: Iterable[Contract]) -> tuple[str, ...]:
    """Return the environments for which some contract declares a layout of its own, and `local`."""
    return tuple(sorted({"local"} | {name for contract in contracts for name, _ in contract.environments}))


def _records(contract: Contract, layout: TopicLayout) -> TopicSpec:
    settings = {"max.message.bytes": str(max(_LEAST_MAX_BYTES, contract.max_bytes + _OVERHEAD_BYTES))}
    settings |= dict(layout.settings) | {
        "cleanup.policy": "compact" if layout.compacted else "delete",
        "retention.ms": str(layout.retention_ms),
    }
    return TopicSpec(contract.topic, layout.partitions, layout.replicas, tuple(sorted(settings.items())))


def _dead_letters(contract: Contract, layout: TopicLayout) -> TopicSpec:
    settings = (("max.message.bytes", str(DEAD_LETTER_MAX_BYTES)), ("retention.ms", str(layout.retention_ms)))
    return TopicSpec(contract.dead_letters, 1, layout.replicas, settings)
