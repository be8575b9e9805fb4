"""Opening a source by name, as the command line and Dagster do."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import SourceOptionsError
from penstock.ingestion.generators import GENERATORS, Generator
from penstock.ingestion.ledger import Clock
from penstock.ingestion.producer.formats import Format
from penstock.ingestion.sources.access_log import AccessLogLines
from penstock.ingestion.sources.files import CsvFiles, Files, ParquetFiles, ReadFile, TextFiles, json_lines
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
    kept in `index`, and connects to a socket again when whoever serves it hangs up. `replay_by` names the field
    whose times `pace.speed` goes by; the event time without. `text` takes lines as they are, not as JSON.
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
        return _host_and_port(self.options.place)

    def socket(self) -> Source:
        return SocketLines(*self.host_and_port(), self.lines, self.clock if self.options.follow else None)

    def path(self) -> Path:
        if not self.options.place:
            raise SourceOptionsError("this source needs a place: name a file or a folder")
        # A ledger knows its source by this: two folders may have a file of one name.
        return Path(self.options.place).absolute()

    def replayed(self, source: Source) -> Source:
        pace = self.options.pace
        if pace == Pace():
            return source
        name = self.options.replay_by or self.contract.event_time
        if name is None:
            raise SourceOptionsError(
                f"contract {self.contract.topic} has no event time to replay by; name a field"
            )
        return Replay(source, times_by(self.contract, name, self.format.decode), pace, self.clock)

    def files(self, read_file: ReadFile) -> Source:
        path, options = self.path(), self.options
        if options.follow and path.is_file():
            raise SourceOptionsError(
                f"{path} is a file, and a folder is what is followed for new files; a file that grows is of the "
                "source 'log'"
            )
        order = FileOrder(path, options.index if path.is_dir() else None)
        return self.replayed(
            Files(f"files {path}", order, read_file, follow=options.follow and path.is_dir())
        )

    def generated(self, make: Callable[[int], Generator]) -> Source:
        options = self.options
        generator = make(options.seed)
        return Generated(generator, self.contract, self.clock, rate=options.rate, encode=self.format.encode)


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a kind of source is opened, and which options it understands."""

    open: Callable[[_Opening], Source]
    takes: tuple[str, ...]


def _generator(make: Callable[[int], Generator]) -> _Kind:
    return _Kind(lambda o: o.generated(make), ("seed", "rate"))


_FILES, _PACED = ("place", "follow", "index", "pace", "replay_by"), ("pace", "replay_by")
_KINDS: Mapping[str, _Kind] = {
    "csv": _Kind(lambda o: o.files(CsvFiles(o.rows)), _FILES),
    "json-lines": _Kind(lambda o: o.files(json_lines), _FILES),
    "text": _Kind(lambda o: o.files(TextFiles(o.rows)), _FILES),
    "parquet": _Kind(lambda o: o.files(ParquetFiles(o.rows)), _FILES),
    "flights": _Kind(lambda o: o.replayed(Flights(o.rows)), _PACED),
    "log": _Kind(lambda o: GrowingLog(o.path(), json_batch), ("place",)),
    "access-log": _Kind(lambda o: GrowingLog(o.path(), AccessLogLines(o.rows)), ("place",)),
    "socket": _Kind(lambda o: o.socket(), ("place", "text", "follow")),
    "http": _Kind(lambda o: HttpPush(*o.host_and_port(), o.format.checker), ("place",)),
    "sse": _Kind(lambda o: ServerSentEvents(o.options.place, json_batch), ("place",)),
    **{name: _generator(make) for name, make in GENERATORS.items()},
}


def open_lines(place: str) -> Source:
    """Return the lines of a socket as they are, judged by no contract."""
    return SocketLines(*_host_and_port(place), json_batch)


def source_kinds() -> tuple[str, ...]:
    """Return the names that `open_source` knows, sorted."""
    return tuple(sorted(_KINDS))


def options_of(kind: str) -> tuple[str, ...]:
    """Return the options that a kind of source understands, by their names in SourceOptions."""
    if kind not in _KINDS:
        raise SourceOptionsError(f"there is no source '{kind}'; there are {', '.join(source_kinds())}")
    return _KINDS[kind].takes


def open_source(kind: str, contract: Contract, form: Format, clock: Clock, options: SourceOptions) -> Source:
    """Return a source of a kind whose records are of a contract, encoded in its format (`format_of`).

    An option that the kind does not understand is refused: nobody should think that it does something.
    """
    takes = options_of(kind)
    for name, value in _given(options).items():
        if name not in takes:
            raise SourceOptionsError(
                f"source '{kind}' does nothing with {_in_words(name, value)}; "
                f"it takes {', '.join(_words_of(takes))}"
            )
    _check_together(options)
    return _KINDS[kind].open(_Opening(contract, form, clock, options))


def _check_together(options: SourceOptions) -> None:
    """Refuse an option that does nothing without another one, or with another one."""
    pace = options.pace
    if pace.speed is not None and pace.rate is not None:
        raise SourceOptionsError("a replay goes at a speed or at a rate: leave out one of them")
    if bool(pace.disorder) != bool(pace.disorder_ms):
        missing = "by how much at most (held-back)" if pace.disorder else "which share (disorder)"
        raise SourceOptionsError(f"records are held back by two options: say also {missing}")
    if options.replay_by is not None and pace.speed is None and not pace.disorder:
        raise SourceOptionsError(
            f"replay by '{options.replay_by}' does nothing without a speed or disorder: name one, or leave it out"
        )


def _host_and_port(place: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    if not port.isdecimal():
        raise SourceOptionsError(f"'{place}' is no address; write host:port, such as 127.0.0.1:9999")
    return host or "127.0.0.1", int(port)


def _given(options: SourceOptions | Pace) -> Mapping[str, Any]:
    """Return the options that say something."""
    nothing = type(options)()
    pairs = ((each.name, getattr(options, each.name)) for each in fields(options))
    return {name: value for name, value in pairs if value != getattr(nothing, name)}


_SAID = {"disorder_ms": "held-back"}


def _in_words(name: str, value: object) -> str:
    if isinstance(value, Pace):
        return ", ".join(f"{_SAID.get(part, part)} {told}" for part, told in _given(value).items())
    return name if value is True else f"{name} {value}"


def _words_of(takes: Iterable[str]) -> Iterator[str]:
    """Yield what a person may say; where a folder's files are numbered is nothing that a person decides."""
    for name in takes:
        match name:
            case "pace":
                yield from (_SAID.get(part.name, part.name) for part in fields(Pace) if part.name != "seed")
            case "index":
                continue
            case _:
                yield name
