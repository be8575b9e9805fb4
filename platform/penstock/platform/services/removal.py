"""What a command would remove, and why it must not yet."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from deltalake.exceptions import DeltaError, TableNotFoundError

from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import measure_tree, open_delta_table, remove_tree
from penstock.platform.errors import RemovalError

RemovedKind = Literal["table", "state", "records of the control store", "topic"]


@dataclass(frozen=True)
class RemovedItem:
    """One thing to remove: what it is, where it is, and how large it is; None for what is not known."""

    kind: RemovedKind
    name: str
    rows: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True)
class RemovalPlan:
    """The things to remove, the reasons against it, and what stays. Nothing is removed while there is a reason."""

    target: str
    items: Sequence[RemovedItem] = ()
    blockers: Sequence[str] = field(default=())
    remarks: Sequence[str] = field(default=())

    def refuse_if_blocked(self) -> None:
        """Raise RemovalError if something depends on the target, or uses it now."""
        if self.blockers:
            raise RemovalError(f"{self.target} is not removed: {'; '.join(self.blockers)}")


def describe_table(path: StoragePath, name: str) -> RemovedItem:
    """Return a table with its rows and the bytes of all its files, older versions included."""
    return RemovedItem("table", name, _count_rows(path), measure_tree(path))


def _count_rows(path: StoragePath) -> int | None:
    """Return the rows by the log; None for a table whose removal was interrupted."""
    try:
        files = open_delta_table(path).get_add_actions(flatten=True)
        return sum(int(rows) for rows in files.column("num_records").to_pylist())
    except (DeltaError, TableNotFoundError):
        return None


def remove_table(path: StoragePath) -> None:
    """Remove a table with all its versions. A table that is partly removed is removed by the next attempt."""
    remove_tree(path)
    if path.exists():
        raise RemovalError(
            f"{path} is not removed completely. Check the permissions of its files, then repeat"
        )
