"""Opening a source by name, as the command line and Dagster do."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from penstock.core.clock import Clock
from penstock.core.names import explain_unknown_name
from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import SourceOptionsError
from penstock.ingestion.generators import GENERATORS, RecordGenerator
from penstock.ingestion.producer.record_format import RecordFormat
from penstock.ingestion.sources.access_log import AccessLogParser
from penstock.ingestion.sources.file_order import FileOrder
from penstock.ingestion.sources.file_source import (
    CsvFileReader,
    FileReader,
    ParquetFileReader,
    RecordFileSource,
    TextFileReader,
    read_json_lines,
)
from penstock.ingestion.sources.flights import FlightSource
from penstock.ingestion.sources.generator_source import GeneratorSource
from penstock.ingestion.sources.http_push import HttpPushSource
from penstock.ingestion.sources.line_batches import MakeLineBatch, TextLineParser, make_json_batch
from penstock.ingestion.sources.log_tail import LogTailSource
from penstock.ingestion.sources.paced_replay import PacedReplaySource, ReplayPace, read_send_times_from
from penstock.ingestion.sources.row_reader import RowReader
from penstock.ingestion.sources.socket_source import SocketSource
from penstock.ingestion.sources.source import RecordSource
from penstock.ingestion.sources.sse import SseSource


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
    pace: ReplayPace = field(default_factory=ReplayPace)
    replay_by: str | None = None
    text: bool = False


@dataclass(frozen=True, slots=True)
class _SourceBuilder:
    contract: Contract
    record_format: RecordFormat
    clock: Clock
    options: SourceOptions

    @property
    def row_reader(self) -> RowReader:
        return RowReader(self.contract, self.record_format.encode)

    @property
    def make_line_batch(self) -> MakeLineBatch:
        return TextLineParser(self.row_reader, self.clock) if self.options.text else make_json_batch

    def parse_address(self) -> tuple[str, int]:
        return _parse_address(self.options.place)

    def open_socket(self) -> RecordSource:
        return SocketSource(
            *self.parse_address(), self.make_line_batch, self.clock if self.options.follow else None
        )

    def resolve_path(self) -> Path:
        if not self.options.place:
            raise SourceOptionsError("this source needs a place: name a file or a folder")
        # A ledger knows its source by this: two folders may have a file of one name.
        return Path(self.options.place).absolute()

    def apply_pace(self, source: RecordSource) -> RecordSource:
        pace = self.options.pace
        if pace == ReplayPace():
            return source
        name = self.options.replay_by or self.contract.event_time
        if name is None:
            raise SourceOptionsError(
                f"contract {self.contract.topic} has no event time to replay by; name a field"
            )
        return PacedReplaySource(
            source, read_send_times_from(self.contract, name, self.record_format.decode), pace, self.clock
        )

    def open_files(self, read_file: FileReader) -> RecordSource:
        path, options = self.resolve_path(), self.options
        if options.follow and path.is_file():
            raise SourceOptionsError(
                f"{path} is a file, and a folder is what is followed for new files; a file that grows is of the "
                "source 'log'"
            )
        order = FileOrder(path, options.index if path.is_dir() else None)
        return self.apply_pace(
            RecordFileSource(f"files {path}", order, read_file, follow=options.follow and path.is_dir())
        )

    def open_generator(self, create_generator: Callable[[int], RecordGenerator]) -> RecordSource:
        options = self.options
        generator = create_generator(options.seed)
        return GeneratorSource(
            generator, self.contract, self.clock, rate=options.rate, encode=self.record_format.encode
        )


@dataclass(frozen=True, slots=True)
class _SourceKind:
    """How a kind of source is opened, and which options it understands."""

    open: Callable[[_SourceBuilder], RecordSource]
    option_names: tuple[str, ...]


def _generator_kind(create_generator: Callable[[int], RecordGenerator]) -> _SourceKind:
    return _SourceKind(lambda builder: builder.open_generator(create_generator), ("seed", "rate"))


_FILE_OPTIONS, _PACE_OPTIONS = ("place", "follow", "index", "pace", "replay_by"), ("pace", "replay_by")
_SOURCE_KINDS: Mapping[str, _SourceKind] = {
    "csv": _SourceKind(lambda o: o.open_files(CsvFileReader(o.row_reader)), _FILE_OPTIONS),
    "json-lines": _SourceKind(lambda o: o.open_files(read_json_lines), _FILE_OPTIONS),
    "text": _SourceKind(lambda o: o.open_files(TextFileReader(o.row_reader)), _FILE_OPTIONS),
    "parquet": _SourceKind(lambda o: o.open_files(ParquetFileReader(o.row_reader)), _FILE_OPTIONS),
    "flights": _SourceKind(lambda o: o.apply_pace(FlightSource(o.row_reader)), _PACE_OPTIONS),
    "log": _SourceKind(lambda o: LogTailSource(o.resolve_path(), make_json_batch), ("place",)),
    "access-log": _SourceKind(
        lambda o: LogTailSource(o.resolve_path(), AccessLogParser(o.row_reader)), ("place",)
    ),
    "socket": _SourceKind(lambda o: o.open_socket(), ("place", "text", "follow")),
    "http": _SourceKind(lambda o: HttpPushSource(*o.parse_address(), o.record_format.checker), ("place",)),
    "sse": _SourceKind(lambda o: SseSource(o.options.place, make_json_batch), ("place",)),
    **{name: _generator_kind(make) for name, make in GENERATORS.items()},
}


def open_socket_lines(address: str) -> RecordSource:
    """Return the lines of a socket as they are, judged by no contract."""
    return SocketSource(*_parse_address(address), make_json_batch)


def list_source_kinds() -> tuple[str, ...]:
    """Return the names that `open_source` knows, sorted."""
    return tuple(sorted(_SOURCE_KINDS))


def list_source_options(kind: str) -> tuple[str, ...]:
    """Return the options that a kind of source understands, by their names in SourceOptions."""
    if kind not in _SOURCE_KINDS:
        raise SourceOptionsError(
            explain_unknown_name("source", kind, list_source_kinds(), "penstock ingest --help")
        )
    return _SOURCE_KINDS[kind].option_names


def open_source(
    kind: str, contract: Contract, record_format: RecordFormat, clock: Clock, options: SourceOptions
) -> RecordSource:
    """Return a source of a kind whose records are of a contract, encoded in its format (`format_of`).

    An option that the kind does not understand is refused: nobody should think that it does something.
    """
    option_names = list_source_options(kind)
    for name, value in _changed_options(options).items():
        if name not in option_names:
            raise SourceOptionsError(
                f"source '{kind}' does nothing with {_describe_option(name, value)}; "
                f"it takes {', '.join(_list_option_words(option_names))}"
            )
    _check_option_combinations(options)
    return _SOURCE_KINDS[kind].open(_SourceBuilder(contract, record_format, clock, options))


def _check_option_combinations(options: SourceOptions) -> None:
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


def _parse_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise SourceOptionsError(f"'{address}' is no address; write host:port, such as 127.0.0.1:9999")
    return host or "127.0.0.1", int(port)


def _changed_options(options: SourceOptions | ReplayPace) -> Mapping[str, Any]:
    """Return the options that say something."""
    defaults = type(options)()
    pairs = ((option.name, getattr(options, option.name)) for option in fields(options))
    return {name: value for name, value in pairs if value != getattr(defaults, name)}


_OPTION_WORDS = {"disorder_ms": "held-back"}


def _describe_option(name: str, value: object) -> str:
    if isinstance(value, ReplayPace):
        return ", ".join(
            f"{_OPTION_WORDS.get(option_name, option_name)} {option_value}"
            for option_name, option_value in _changed_options(value).items()
        )
    return name if value is True else f"{name} {value}"


def _list_option_words(option_names: Iterable[str]) -> Iterator[str]:
    """Yield what a person may say; where a folder's files are numbered is nothing that a person decides."""
    for name in option_names:
        match name:
            case "pace":
                yield from (
                    _OPTION_WORDS.get(part.name, part.name)
                    for part in fields(ReplayPace)
                    if part.name != "seed"
                )
            case "index":
                continue
            case _:
                yield name
