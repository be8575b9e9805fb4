"""The folders and warehouses of a stream and of its replay."""

from dataclasses import dataclass
from pathlib import Path

from penstock.engine.storage import StoragePath
from penstock.engine.stream_folders import resolve_stream_folder


@dataclass(frozen=True)
class ReplayPaths:
    """Where a stream and its replay keep their state and tables."""

    streams_folder: Path
    warehouse: StoragePath
    stream_name: str
    replay_name: str

    @property
    def replay_folder(self) -> Path:
        """The replay's folder, which becomes the stream's."""
        return self.streams_folder / self.stream_name / self.replay_name

    @property
    def replay_warehouse(self) -> StoragePath:
        """The warehouse of the replay's tables."""
        return self.warehouse / "runs" / self.stream_name / self.replay_name

    @property
    def live_folder(self) -> Path:
        """The stream's current folder."""
        return resolve_stream_folder(self.streams_folder, self.stream_name)
