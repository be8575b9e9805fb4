"""A folder whose changes and syncs are recorded, to tell what a power cut may leave of it at any time of a run.

The recorder compares the folder before and after each operation that Python makes, so it also sees what libraries
write by themselves. A sync is recorded, and not made: what was synced is only a matter of this record.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

NodeId = int
OBSERVED_CALLS = ("replace", "rename", "link", "unlink", "mkdir", "rmdir", "truncate")


@dataclass(frozen=True)
class FileState:
    """The content of a file: what was synced last, None for nothing, and what is written now."""

    synced: bytes | None
    current: bytes


@dataclass(frozen=True)
class FolderState:
    """The names in a folder: those that were synced last, and those that are there now."""

    synced: Mapping[str, NodeId]
    current: Mapping[str, NodeId]


@dataclass(frozen=True)
class DiskState:
    """All files and folders after a number of operations. Node 0 is the folder itself."""

    operation: str
    files: Mapping[NodeId, FileState]
    folders: Mapping[NodeId, FolderState]


@dataclass
class RecordedDisk:
    """Records the changes below a folder while `recording` is open."""

    root: Path
    states: list[DiskState] = field(default_factory=list)
    """The states of the disk, one after each operation that changed it."""
    _files: dict[NodeId, FileState] = field(default_factory=dict)
    _folders: dict[NodeId, FolderState] = field(default_factory=dict)
    _nodes_by_inode: dict[int, NodeId] = field(default_factory=dict)
    _node_count: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what happens in the block."""
        self._folders[0] = FolderState({}, {})
        self._nodes_by_inode[self.root.stat().st_ino] = 0
        self._node_count = 1
        with ExitStack() as patches:
            for name in OBSERVED_CALLS:
                patches.enter_context(mock.patch.object(os, name, self._observe(name, getattr(os, name))))
            for name in ("fsync", "fdatasync"):
                patches.enter_context(mock.patch.object(os, name, self._record_sync))
            yield
        self._poll("end")

    def _observe(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def observed_call(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                self._poll("write")
                result = call(*arguments, **options)
                self._poll(f"{name} {' '.join(map(str, arguments))}")
                return result

        return observed_call

    def _record_sync(self, descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        with self._lock:
            self._poll("write")
            node = self._nodes_by_inode.get(os.fstat(descriptor).st_ino)
            if node in self._files:
                content = self._files[node].current
                self._files[node] = FileState(content, content)
            elif node in self._folders:
                names = self._folders[node].current
                self._folders[node] = FolderState(names, names)
            else:
                return  # outside of the folder
            self._append(f"sync {path.relative_to(self.root)}")

    def _poll(self, operation: str) -> None:
        """Compare the folder with the last state, and append a state if something changed."""
        with self._lock:
            before = (dict(self._files), dict(self._folders))
            inodes: dict[int, NodeId] = {}
            self._poll_folder(self.root, 0, inodes)
            inodes[self.root.stat().st_ino] = 0
            self._nodes_by_inode = inodes  # a freed inode may become another file
            if before != (self._files, self._folders):
                self._append(operation)

    def _poll_folder(self, folder: Path, node: NodeId, inodes: dict[int, NodeId]) -> None:
        names: dict[str, NodeId] = {}
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            try:
                status = entry.stat(follow_symlinks=False)
                content = None if stat.S_ISDIR(status.st_mode) else Path(entry.path).read_bytes()
            except FileNotFoundError:
                continue  # a library renamed it meanwhile
            child = inodes.get(status.st_ino, self._nodes_by_inode.get(status.st_ino))
            if child is None or (content is None) != (child in self._folders):
                child, self._node_count = self._node_count, self._node_count + 1
            inodes[status.st_ino] = names[entry.name] = child
            if content is None:
                self._folders.setdefault(child, FolderState({}, {}))
                self._poll_folder(Path(entry.path), child, inodes)
            elif child not in self._files or self._files[child].current != content:
                synced = self._files[child].synced if child in self._files else None
                self._files[child] = FileState(synced, content)
        if self._folders[node].current != names:
            self._folders[node] = FolderState(self._folders[node].synced, names)

    def _append(self, operation: str) -> None:
        self.states.append(DiskState(operation, dict(self._files), dict(self._folders)))
