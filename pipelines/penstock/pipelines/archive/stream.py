"""An archive at work in a host: it gathers what a topic brings, and takes it in batches."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.pipelines.archive.archive import Archive
from penstock.pipelines.archive.reader import TopicReader, topic_id
from penstock.pipelines.batch.journal import kept_outcomes
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.right import Right
from penstock.pipelines.errors import ArchiveError
from penstock.pipelines.store import Place

Clock = Callable[[], int]
_READ_SECONDS = 0.5


@dataclass(frozen=True)
class ArchiveConfig:
    """Where an archive reads and writes, and how large its batches are.

    A batch is taken `every_ms` after its first record came, or when it has so many records or bytes. So files are
    not small on a quiet topic, and memory is bounded on a loud one.
    """

    bootstrap: str
    directory: Path
    warehouse: Place
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    compacted: bool = False
    """Whether the topic drops records whose key came again."""
    every_ms: int = 10_000
    records: int = 200_000
    bytes: int = 67_108_864

    @property
    def clients(self) -> Mapping[str, str]:
        """What clients of the broker are made with."""
        return {"bootstrap.servers": self.bootstrap, "log_level": "2", **self.client}


class ArchiveStream:
    """The archive of a topic, that runs until it is stopped, or fails. Start it once."""

    def __init__(
        self, topic: str, config: ArchiveConfig, right: Right, told: Callable[[Outcome], None], clock: Clock
    ) -> None:
        self._topic = topic
        self._config = config
        self._right = right
        self._told = told
        self._clock = clock
        self._since: int | None = None
        self._stopping = threading.Event()
        self._paused = threading.Event()
        self._idle = threading.Event()
        self._cut = False
        self._thread = threading.Thread(target=self._run, name=f"archive of {topic}", daemon=True)
        self._failure: BaseException | None = None

    def decided(self, after: int) -> Iterator[Outcome]:
        """Every batch after one that is decided and kept."""
        return kept_outcomes(self._config.directory / "journal", after)

    def start(self, *, reading: bool = True) -> None:
        """Finish what the last run began, and begin to read, or wait until it is to."""
        config = self._config
        self._topic_id = topic_id(config.clients, self._topic)
        self._archive = Archive(
            self._topic, self._topic_id, config.directory, config.warehouse, self._right, self._told
        )
        self._archive.resume()
        self._reader = TopicReader(config.clients, self._topic, self._archive.ends, config.compacted)
        if not reading:
            self._paused.set()
        self._thread.start()

    def failure(self) -> BaseException | None:
        """Why the archive no longer runs; None while it does."""
        return self._failure

    @property
    def last(self) -> Outcome | None:
        """The newest batch that is decided."""
        return self._archive.last

    def at(self) -> str:
        """Which batch it gathers; the records of a batch are known when it is taken."""
        last = self._archive.last if hasattr(self, "_archive") else None
        return f"batch {0 if last is None else last.batch_id + 1}"

    def pause(self) -> None:
        """Take what was read into the archive, and read no more."""
        self._idle.clear()
        self._paused.set()
        while self._thread.is_alive() and not self._idle.wait(_READ_SECONDS):
            pass

    def resume(self) -> None:
        """Read again."""
        self._paused.clear()

    def stop(self) -> None:
        """Stop, and leave what was read to the next start."""
        self._cut = True
        self.drain()

    def drain(self) -> None:
        """Take what was read into the archive, and stop."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._paused.is_set():
                    self._wait()
                    continue
                self._reader.read(_READ_SECONDS, self._clock())
                if self._is_due():
                    self._take()
            if self._reader.taken and not self._cut:
                self._take()
        except Exception as problem:  # noqa: BLE001  # whatever it is, it ends the archive; the host is told
            self._failure = problem
        finally:
            self._reader.close()

    def _wait(self) -> None:
        """Read nothing for a moment; what was read before is taken at once."""
        if self._reader.taken:
            self._take()
        self._idle.set()
        self._stopping.wait(_READ_SECONDS)

    def _is_due(self) -> bool:
        reader, now = self._reader, self._clock()
        if not reader.taken:
            self._since = None
            return False
        self._since = now if self._since is None else self._since
        full = reader.records >= self._config.records or reader.bytes >= self._config.bytes
        return full or now - self._since >= self._config.every_ms

    def _take(self) -> None:
        if topic_id(self._config.clients, self._topic) != self._topic_id:
            raise ArchiveError(
                f"topic {self._topic} was made anew while it was archived: what was read is not taken"
            )
        self._archive.take(self._reader.taken, self._clock(), self._reader.lag())
        self._reader.forget()
        self._since = None
