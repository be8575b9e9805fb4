"""Finds the kinds of sources, and opens a source by its name."""

from collections.abc import Mapping
from inspect import isabstract
from pathlib import Path
from typing import Any

from penstock.core.clock import Clock
from penstock.core.errors import UnknownKindError
from penstock.core.kind_registry import KindRegistry
from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import SourceOptionsError
from penstock.ingestion.producer.record_serde import RecordSerde
from penstock.ingestion.sources.source import RecordSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind, SourceOption
from penstock.ingestion.sources.user_source import open_checked


def _name_source_kind(member: Any) -> str | None:
    return member.kind or None if _is_source_kind(member) else None


def _is_source_kind(member: Any) -> bool:
    return isinstance(member, type) and issubclass(member, SourceKind) and not isabstract(member)


SOURCE_KINDS: KindRegistry[type[SourceKind]] = KindRegistry(
    noun="source",
    packages=("penstock.ingestion.sources", "penstock.ingestion.generators"),
    entry_point_group="penstock.sources",
    name_kind=_name_source_kind,
    is_kind=_is_source_kind,
    how_to_define="Derive the class from SourceKind, and define `kind` and `open`.",
    list_command="penstock ingest --help",
)


def discover_source_kinds() -> Mapping[str, type[SourceKind]]:
    """Return the kinds of these packages and of installed entry points, by name."""
    return SOURCE_KINDS.kinds_by_name


def find_source_kind(name: str) -> type[SourceKind]:
    """Return the kind with this name, or the class of a `module:Class`; raise SourceOptionsError otherwise."""
    try:
        return SOURCE_KINDS.find_kind(name)
    except UnknownKindError as error:
        raise SourceOptionsError(str(error)) from error


def list_source_kinds() -> tuple[str, ...]:
    """Return the names of all kinds, sorted."""
    return tuple(discover_source_kinds())


def list_source_options() -> tuple[SourceOption, ...]:
    """Return the options of all kinds, one for each name; its help combines the helps of the kinds."""
    options_by_name: dict[str, list[SourceOption]] = {}
    for kind in discover_source_kinds().values():
        for option in kind.options:
            options_by_name.setdefault(option.name, []).append(option)
    return tuple(
        SourceOption(name, " ".join(dict.fromkeys(each.help for each in options)), is_flag=options[0].is_flag)
        for name, options in options_by_name.items()
    )


def open_source(
    name: str,
    contract: Contract,
    record_format: RecordSerde,
    clock: Clock,
    options: Mapping[str, Any] | None = None,
    index_path: Path | None = None,
) -> RecordSource:
    """Return a source of records of a contract, in its format.

    An option that the source does not have is refused. Values are texts, which are parsed, or parsed values.
    """
    kind = find_source_kind(name)
    values = kind.convert_options(options or {})
    context = SourceContext(contract, record_format, clock, values, index_path)
    return open_checked(name, kind, context)
