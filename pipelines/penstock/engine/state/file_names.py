"""What the files of a state are called.

Every attempt at a batch writes files of its own: a host that was taken over, and wakes, can then replace nothing
that its successor's outcome names. What nobody named goes when the stream forgets.
"""

import re
from uuid import uuid4

_PART_FILE = re.compile(r"run-\d+-p(\d\d)-[0-9a-f]+\.arrow")
_BATCH_NUMBERS = re.compile(r"(?:run-|_)(\d+)")


def new_run_name(batch_id: int, part: int | None = None) -> str:
    """A file for what one attempt at a batch changes, in one part where it is folded in parts."""
    return f"run-{batch_id:012d}{'' if part is None else f'-p{part:02d}'}-{_new_attempt_id()}.arrow"


def new_merged_name(first: str, last: str) -> str:
    """A file for adjacent runs as one, by the names of the oldest and the youngest of them."""
    return (
        f"run-{_BATCH_NUMBERS.findall(first)[0]}_{_BATCH_NUMBERS.findall(last)[-1]}-{_new_attempt_id()}.arrow"
    )


def is_for_part(name: str, part: int) -> bool:
    """Whether a run's file may hold groups of a part."""
    part_match = _PART_FILE.fullmatch(name)
    return part_match is None or int(part_match[1]) == part


def _new_attempt_id() -> str:
    return uuid4().hex[:8]
