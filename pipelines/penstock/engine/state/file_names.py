"""Names of state files.

Every attempt at a batch writes files with unique names. A fenced host that resumes late therefore cannot
replace a file that its successor's outcome names. Retention deletes files that no outcome names.
"""

import re
from uuid import uuid4

_PART_FILE = re.compile(r"run-\d+-p(\d\d)-[0-9a-f]+\.arrow")
_BATCH_NUMBERS = re.compile(r"(?:run-|_)(\d+)")


def new_run_name(batch_id: int, part: int | None = None) -> str:
    """Return a name for the changes of one attempt at a batch; `part` is the hash part if the state is split."""
    return f"run-{batch_id:012d}{'' if part is None else f'-p{part:02d}'}-{_new_attempt_id()}.arrow"


def new_merged_name(first: str, last: str) -> str:
    """Return a name for a merge of adjacent runs, from the names of the oldest and the youngest."""
    return (
        f"run-{_BATCH_NUMBERS.findall(first)[0]}_{_BATCH_NUMBERS.findall(last)[-1]}-{_new_attempt_id()}.arrow"
    )


def is_for_part(name: str, part: int) -> bool:
    """Return whether a run's file may hold groups of a hash part."""
    part_match = _PART_FILE.fullmatch(name)
    return part_match is None or int(part_match[1]) == part


def _new_attempt_id() -> str:
    return uuid4().hex[:8]
