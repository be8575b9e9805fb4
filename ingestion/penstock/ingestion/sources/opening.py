"""Opening a source by name, as the command line and Dagster do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import SourceError
from penstock.ingestion.generators import GENERATORS, Generator
from penstock.ingestion.ledger import Clock
from penstock.ingestion.producer.formats import Format
from penstock.ingestion.sources.access_log import AccessLogLines
from penstock.ingestion.sources.files import CsvFiles, Files, ParquetFiles, ReadFile, json_lines
from penstock.ingestion.sources.flights import Flights
from penstock.ingestion.sources.folder import FileOrder
from penstock.ingestion.sources.generated import Generated
from penstock.ingestion.sources.http_push import HttpPush
from penstock.ingestion.sources.lines import MakeBatch, TextLines, json_batch
from penstock.ingestion.sources.log import GrowingLog
from penstock.ingestion.sources.replay import Pace, Replay, times_by
from penstock.ingestion.sources.rows import RowReader
from penstock.ingestion.sources.socket_lines import SocketLines
from penstock.ingestion.sources.source import Source
from penstock.ingestion.sources.sse import ServerSentEvents


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a source may be told; each kind takes what it understands.

    `place` is a file, a folder, a URL, or host:port. `follow` keeps a folder open for new files, whose order is
    kept in `index`. `replay_by` names the field whose times `pace.speed` goes by; the event time without. `text`
    takes lines as they are, where they are no JSON.
    """

    place: str = ""
    seed: int = 0
    rate: float | None = None
    follow: bool = False
    index: Path | None = None
    pace: Pace = field(default_factory=Pace)
    replay_by: str | None = None
    text: bool = False


@dataclass(frozen=True, slots=True)
class _Opening:
    contract: Contract
    format: Format
    clock: Clock
    options: SourceOptions

    @property
    def rows(self) -> RowReader:
        return RowReader(self.contract, self.format.encode)

    @property
    def lines(self) -> MakeBatch:
        return TextLines(self.rows, self.clock) if self.options.text else json_batch

    def host_and_port(self) -> tuple[str, int]:
        host, _, port = self.options.place.rpartition(":")
        if not port.isdecimal():
            raise SourceError(
                f"'{self.options.place}' is no address; write host:port, such as 127.0.0.1:9999"
            )
        return host or "127.0.0.1", int(port)

    def path(self) -> Path:
        if not self.options.place:
            raise SourceError("this source needs a place: name a file or a folder")
        return Path(self.options.place)

    def replayed(self, source: Source) -> Source:
        pace = self.options.pace
        if pace == Pace():
            return source
        name = self.options.replay_by or self.contract.event_time
        if name is None:
            raise SourceError(f"contract {self.contract.topic} has no event time to replay by; name a field")
        return Replay(source, times_by(self.contract, name, self.format.decode), pace, self.clock)

    def files(self, read_file: ReadFile) -> Source:
        path, options = self.path(), self.options
        order = FileOrder(path, options.index if path.is_dir() else None)
        return self.replayed(
            Files(f"files {path}", order, read_file, follow=options.follow and path.is_dir())
        )

    def generated(self, make: Callable[[int], Generator]) -> Source:
        options = self.options
        generator = make(options.seed)
        return Generated(generator, self.contract, self.clock, rate=options.rate, encode=self.format.encode)


_OPENERS: Mapping[str, Callable[[_Opening], Source]] = {
    "csv": lambda o: o.files(CsvFiles(o.rows)),
    "json-lines": lambda o: o.files(json_lines),
    "parquet": lambda o: o.files(ParquetFiles(o.rows)),
    "flights": lambda o: o.replayed(Flights(o.rows)),
    "log": lambda o: GrowingLog(o.path(), json_batch),
    "access-log": lambda o: GrowingLog(o.path(), AccessLogLines(o.rows)),
    "socket": lambda o: SocketLines(*o.host_and_port(), o.lines),
    "http": lambda o: HttpPush(*o.host_and_port(), o.format.checker),
    "sse": lambda o: ServerSentEvents(o.options.place, json_batch),
}


def source_kinds() -> tuple[str, ...]:
    """Return the names that `open_source` knows, sorted."""
    return tuple(sorted([*_OPENERS, *GENERATORS]))


def open_source(kind: str, contract: Contract, form: Format, clock: Clock, options: SourceOptions) -> Source:
    """Return a source of a kind whose records are of a contract, encoded in its format (`format_of`)."""
    opening = _Opening(contract, form, clock, options)
    if kind in GENERATORS:
        return opening.generated(GENERATORS[kind])
    if kind not in _OPENERS:
        raise SourceError(f"there is no source '{kind}'; there are {', '.join(source_kinds())}")
    return _OPENERS[kind](opening)
