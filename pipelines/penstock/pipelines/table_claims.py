"""Which pipeline owns which table and topic: no two may write the same one.

All outputs count: tables of every kind of sink, late records, ledgers, checks, archives, and published topics.
Names that differ only in case are the same, because some file systems do not tell them apart.

A stream with state owns the tables in its stored definition, so a running stream goes on and a newcomer is refused.
Without state, a pipeline owns the table of its own name, and otherwise the first by name does.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.core.display_path import display_path
from penstock.core.source_tree import find_place
from penstock.engine.archive.archive_names import archive_name, ledger_path, records_path
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.stages import Plan
from penstock.engine.tables.table_paths import ERASURES_FOLDER, list_owned_paths
from penstock.stream.problem_lines import read_definition_lines

PLATFORM_FOLDERS = (
    "checks",
    "erasures",
    "late",
    "ledger",
    "lookups",
    "quarantine",
    "raw",
    "runs",
    "streams",
    "topics",
)
"""Folders of the warehouse, and of assets, that no sink may use."""

_FOLDER_PATTERN = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True)
class ClaimedOutput:
    """A table or topic of a stream, and the keyword that declares it in its file; empty for derived tables."""

    path: str
    keyword: str
    name: str

    @property
    def key(self) -> str:
        """What two outputs have in common that are the same on every file system."""
        return self.path.casefold()

    def __str__(self) -> str:
        """Return the output in words."""
        kind = "topic" if self.keyword == "publish" else "table"
        return f"{kind} {self.name!r}" if self.keyword else f"its table {self.path}"


@dataclass(frozen=True)
class StreamOutputs:
    """The outputs of a stream in its file, and those in the stored definition of its state."""

    stream: str
    file: Path | None
    outputs: Sequence[ClaimedOutput] = ()
    state_outputs: Sequence[ClaimedOutput] = ()

    def rank_claim(self, output: ClaimedOutput) -> tuple[bool, bool, str]:
        """Return the order of those who want the same output; the first one owns it."""
        has_state = any(output.key == held.key for held in self.state_outputs)
        return not has_state, output.name != self.stream, self.stream

    def locate(self, output: ClaimedOutput) -> str:
        """Return the file and the line that declare an output."""
        if self.file is None:
            return f"its file was removed: `penstock stream drop {self.stream}`"
        return locate_output(self.file, output)


def list_pipeline_outputs(plan: Plan) -> Iterator[ClaimedOutput]:
    """Yield what a pipeline writes: the declared tables and topics first, then the derived ones."""
    declared = {}
    for sink in (sink for stage in plan.stages for sink in stage.all_sinks):
        keyword = "write" if sink.published_topic is None else "publish"
        declared[sink.path] = ClaimedOutput(sink.path, keyword, sink.name)
    yield from declared.values()
    derived = [*list_owned_paths(plan), f"checks/{plan.name}", f"{ERASURES_FOLDER}/{plan.name}"]
    yield from (ClaimedOutput(path, "", path) for path in dict.fromkeys(derived) if path not in declared)


def list_archive_outputs(topic: str) -> StreamOutputs:
    """Return what the archive of a topic writes."""
    outputs = [ClaimedOutput(path, "", path) for path in (records_path(topic), ledger_path(topic))]
    return StreamOutputs(archive_name(topic), None, state_outputs=outputs)


class TableClaims:
    """The outputs of all streams, and who owns each."""

    def __init__(self, streams: Sequence[StreamOutputs], dead_letter_topics: Mapping[str, str]) -> None:
        """`dead_letter_topics` has the topic of each topic for dead letters."""
        self._streams = {stream.stream: stream for stream in streams}
        self._dead_letter_topics = dead_letter_topics
        self._owners: dict[str, tuple[StreamOutputs, ClaimedOutput]] = {}
        for stream in streams:
            for output in (*stream.outputs, *stream.state_outputs):
                rival = self._owners.get(output.key)
                if rival is None or stream.rank_claim(output) < rival[0].rank_claim(rival[1]):
                    self._owners[output.key] = stream, output

    def find_conflict(self, name: str) -> DefinitionError | None:
        """Return why a pipeline may not write one of its outputs; None if it owns all."""
        stream = self._streams.get(name)
        if stream is None or stream.file is None:
            return None
        for output in stream.outputs:
            if problem := self._find_problem(stream, output):
                fix = "Choose another name" if output.keyword else "Rename the pipeline, or its stage"
                fix = "Set another `folder` in the class of the sink" if "the sink of" in problem else fix
                field = output.keyword or name
                return DefinitionError(field, problem, fix, locate_output(stream.file, output))
        return None

    def _find_problem(self, stream: StreamOutputs, output: ClaimedOutput) -> str:
        owner, owned_output = self._owners[output.key]
        if owner.stream != stream.stream:
            kind = "archive" if owner.file is None and owner.stream.startswith("archive-") else "pipeline"
            owner_text = f"{kind} {owner.stream}"
            if kind == "pipeline":
                owner_text += f" ({owner.locate(owned_output)})"
            as_its_own = f" as {owned_output.path}" if owned_output.path != output.path else ""
            return f"{output} already belongs to {owner_text}{as_its_own}"
        if output.keyword == "publish" and output.name in self._dead_letter_topics:
            topic = self._dead_letter_topics[output.name]
            return f"{output} holds the dead letters of topic {topic}"
        folder = output.path.rpartition("/")[0]
        if output.keyword and folder in PLATFORM_FOLDERS:
            return f"the sink of {output} has folder {folder!r}, which belongs to the platform"
        if output.keyword and not _FOLDER_PATTERN.fullmatch(folder):
            return (
                f"the sink of {output} has folder {folder!r}; a folder is one word of letters, digits and _"
            )
        return ""


def locate_output(file: Path, output: ClaimedOutput) -> str:
    """Return a pipeline's file, with the line that declares an output."""
    if not output.keyword or not file.is_file():
        return display_path(file)
    place = find_place(read_definition_lines(file), output.keyword, output.name)
    return display_path(file, *place) if place else display_path(file)
