"""What a stream may have beyond what every stream needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.batch.placement import HERE, Placement
from penstock.pipelines.batch.poison import SentAgain, nothing_sent_again
from penstock.pipelines.repeats.memory import Memory

Versions = Callable[[], Mapping[str, int]]
"""Tells the newest version of each table that steps look into."""


def nobody_knows(_ranges: Sequence[Range]) -> int:
    """Say of no record that it waits."""
    return 0


@dataclass(frozen=True)
class Options:
    """How the batches of one stream are run. As it stands: all is folded here, and nothing is looked into."""

    behind: Callable[[Sequence[Range]], int] = nobody_knows
    """How many records wait after these ranges."""
    fingerprint: str = ""
    """Of the plan: which definition made a state."""
    memory: Memory | None = None
    """The ids of records, where repeats are set aside."""
    placement: Placement = HERE
    poison_limit: int = 0
    """How many records that break one's own code may be set aside; 0 for none."""
    lookups: Versions = dict
    sent_again: SentAgain = nothing_sent_again


PLAIN = Options()
