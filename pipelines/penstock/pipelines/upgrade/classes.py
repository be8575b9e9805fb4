"""What a change of a definition takes, from nothing to a replay."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Class(IntEnum):
    """What a change takes; of several changes the greatest counts."""

    SAME = 0
    COMPATIBLE = 1
    MIGRATABLE = 2
    REPLAY = 3

    @property
    def word(self) -> str:
        """The class, for people and programs."""
        return self.name.lower()

    @property
    def says(self) -> str:
        """What happens to the state."""
        return _SAYS[self]


_SAYS = {
    Class.SAME: "nothing changed",
    Class.COMPATIBLE: "the state is kept, and the new definition holds from the next batch on",
    Class.MIGRATABLE: "the state is rewritten before the next batch",
    Class.REPLAY: "the state does not fit: new tables are made from the records, and switched",
}


@dataclass(frozen=True)
class Difference:
    """One thing that is said otherwise than before, what that takes, and what a person should know of it."""

    what: str
    before: str
    after: str
    takes: Class
    note: str


@dataclass(frozen=True)
class Upgrade:
    """Everything that differs between two definitions of a stream."""

    stream: str
    differences: Sequence[Difference] = ()
    from_now: frozenset[str] = frozenset()
    """Columns that are declared to count only what comes from now on, in windows that are open."""

    @property
    def takes(self) -> Class:
        """What the whole of it takes."""
        return max((each.takes for each in self.differences), default=Class.SAME)

    @property
    def in_words(self) -> str:
        """What changed, in one sentence."""
        return "; ".join(
            f"{d.what} was {d.before} and is {d.after} ({d.takes.word})" for d in self.differences
        )
