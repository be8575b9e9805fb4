"""What the files of a state are called.

Every attempt at a batch writes files of its own: a host that was taken over, and wakes, can then replace nothing
that its successor's outcome names. What nobody named goes when the stream forgets.
"""

import re
from uuid import uuid4

_OF_A_PART = re.compile(r"run-\d+-p(\d\d)-[0-9a-f]+\.arrow")
_BATCHES = re.compile(r"(?:run-|_)(\d+)")


def run_name(batch_id: int, part: int | None = None) -> str:
    """A file for what one attempt at a batch changes, in one part where it is folded in parts."""
    return f"run-{batch_id:012d}{'' if part is None else f'-p{part:02d}'}-{_attempt()}.arrow"


def merged_name(first: str, last: str) -> str:
    """A file for adjacent runs as one, by the names of the oldest and the youngest of them."""
    return f"run-{_BATCHES.findall(first)[0]}_{_BATCHES.findall(last)[-1]}-{_attempt()}.arrow"


def is_for(name: str, part: int) -> bool:
    """Whether a run's file may hold groups of a part."""
    named = _OF_A_PART.fullmatch(name)
    return named is None or int(named[1]) == part


def _attempt() -> str:
    return uuid4().hex[:8]
