"""What a power cut leaves: for each name and content that was not synced, the old or the new one, or a torn one.

Names and contents reach a disk in any order, so that each of them is chosen alone. The choices come from a seeded
generator. A crash is a state of the recorded disk and its choices, and can be made again, or be shrunk.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.pipelines.engine.power.recorded_disk import DiskState, FileState, NodeId

NameChoice = Literal["old", "new"]
ContentChoice = Literal["old", "empty", "prefix", "lines", "zeros", "hole", "new"]
CONTENT_CHOICES: tuple[ContentChoice, ...] = ("old", "empty", "prefix", "lines", "zeros", "hole", "new")
NameKey = tuple[NodeId, str]


@dataclass(frozen=True)
class Crash:
    """A power cut at a state, with what became of each name and content that was not synced."""

    state: DiskState
    names: dict[NameKey, NameChoice]
    contents: dict[NodeId, ContentChoice]

    def write(self, target: Path) -> None:
        """Write the folder as the next start finds it."""
        self._write_folder(0, target)

    def describe(self) -> str:
        """Return the operation before the cut, and the choices that differ from those of a killed process."""
        paths = dict(_list_paths(self.state, 0, ""))
        lines = [f"cut after: {self.state.operation}"]
        lines += [
            f"  name {paths[folder]}/{name}: {choice}"
            for (folder, name), choice in self.names.items()
            if choice == "old"
        ]
        lines += [
            f"  content {paths.get(node, node)}: {choice}"
            for node, choice in self.contents.items()
            if choice != "new"
        ]
        return "\n".join(lines)

    def shrunk_choices(self) -> Iterator["Crash"]:
        """Yield crashes with one choice less than this one has."""
        for key, choice in self.names.items():
            if choice == "old":
                yield Crash(self.state, {**self.names, key: "new"}, self.contents)
        for node, content_choice in self.contents.items():
            if content_choice != "new":
                yield Crash(self.state, self.names, {**self.contents, node: "new"})

    def _write_folder(self, node: NodeId, target: Path) -> None:
        target.mkdir(exist_ok=True)
        folder = self.state.folders[node]
        for name in sorted({*folder.synced, *folder.current}):
            names = folder.synced if self.names.get((node, name)) == "old" else folder.current
            child = names.get(name)
            if child is None:
                continue
            if child in self.state.folders:
                self._write_folder(child, target / name)
            else:
                choice = self.contents.get(child, "new")
                (target / name).write_bytes(_tear(self.state.files[child], choice))


def choose_crash(state: DiskState, random_source: random.Random) -> Crash:
    """Choose what a cut leaves. Mostly few things are lost, sometimes all that was not synced."""
    loss = random_source.choice((0.1, 0.5, 0.9, 1.0))
    names: dict[NameKey, NameChoice] = {
        key: "old" if random_source.random() < loss else "new" for key in _list_unsynced_names(state)
    }
    contents: dict[NodeId, ContentChoice] = {
        node: random_source.choice(CONTENT_CHOICES) if random_source.random() < loss else "new"
        for node in _list_unsynced_files(state)
    }
    return Crash(state, names, contents)


def _list_unsynced_names(state: DiskState) -> Iterator[NameKey]:
    for node, folder in state.folders.items():
        for name in sorted({*folder.synced, *folder.current}):
            if folder.synced.get(name) != folder.current.get(name):
                yield node, name


def _list_unsynced_files(state: DiskState) -> Iterator[NodeId]:
    return (node for node, file in state.files.items() if file.synced != file.current)


def _list_paths(state: DiskState, node: NodeId, path: str) -> Iterator[tuple[NodeId, str]]:
    yield node, path
    folder = state.folders.get(node)
    if folder is not None:
        for name, child in {**folder.synced, **folder.current}.items():
            yield from _list_paths(state, child, f"{path}/{name}")


def _tear(file: FileState, choice: ContentChoice) -> bytes:
    """Return the content after a cut. What was appended to synced content is torn alone."""
    old = file.synced or b""
    if choice == "old":
        return old
    start = len(old) if file.current.startswith(old) else 0
    return file.current[:start] + _tear_new(file.current[start:], choice)


def _tear_new(new: bytes, choice: ContentChoice) -> bytes:
    match choice:
        case "prefix":
            return new[: len(new) // 2]
        case "lines":  # all lines but the last
            return new[: new.rstrip(b"\n").rfind(b"\n") + 1]
        case "zeros":
            return bytes(len(new))
        case "hole":
            third = len(new) // 3
            return new[:third] + bytes(third) + new[2 * third :]
        case "new":
            return new
        case _:
            return b""
