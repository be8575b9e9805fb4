"""Finds the kinds of sources, and opens a source by its name."""

import logging
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isabstract
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from penstock.core.clock import Clock
from penstock.core.names import explain_unknown_name
from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import SourceOptionsError
from penstock.ingestion.producer.record_format import RecordFormat
from penstock.ingestion.sources.source import RecordSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind, SourceOption

_LOGGER = logging.getLogger(__name__)
_PACKAGES = ("penstock.ingestion.sources", "penstock.ingestion.generators")
ENTRY_POINT_GROUP = "penstock.sources"


@cache
def discover_source_kinds() -> Mapping[str, type[SourceKind]]:
    """Return the kinds of this package and of installed entry points, by name.

    An entry point that cannot be loaded is logged and skipped. A kind of this package cannot be replaced.
    """
    kinds = {kind.kind: kind for package in _PACKAGES for kind in _scan_package(package)}
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            kinds.setdefault(entry_point.name, _require_kind(entry_point.load(), entry_point.value))
        except Exception:
            # User code can raise any exception while it is imported.
            _LOGGER.exception(
                "Entry point not loaded (group=%s, name=%s)", ENTRY_POINT_GROUP, entry_point.name
            )
    return dict(sorted(kinds.items()))


def find_source_kind(name: str) -> type[SourceKind]:
    """Return the kind with this name, or the class of a `module:Class`; raise SourceOptionsError otherwise."""
    module, is_reference, class_name = name.partition(":")
    if is_reference:
        try:
            return _require_kind(getattr(import_module(module), class_name), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise SourceOptionsError(
                f"Source '{name}' cannot be loaded: {error}. Use module:Class, and check PYTHONPATH."
            ) from error
    kinds = discover_source_kinds()
    if name not in kinds:
        raise SourceOptionsError(explain_unknown_name("source", name, kinds, "penstock ingest --help"))
    return kinds[name]


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
    record_format: RecordFormat,
    clock: Clock,
    options: Mapping[str, Any] | None = None,
    index_path: Path | None = None,
) -> RecordSource:
    """Return a source of records of a contract, in its format.

    An option that the source does not have is refused. Values are texts, which are parsed, or parsed values.
    """
    kind = find_source_kind(name)
    values = kind.convert_options(options or {})
    return kind.open(SourceContext(contract, record_format, clock, values, index_path))


def _scan_package(package_name: str) -> Iterator[type[SourceKind]]:
    for module_info in iter_modules(import_module(package_name).__path__):
        module = import_module(f"{package_name}.{module_info.name}")
        for member in vars(module).values():
            if (
                isinstance(member, type)
                and issubclass(member, SourceKind)
                and member.__module__ == module.__name__
                and member.kind
                and not isabstract(member)
            ):
                yield member


def _require_kind(candidate: Any, reference: str) -> type[SourceKind]:
    if not isinstance(candidate, type) or not issubclass(candidate, SourceKind) or isabstract(candidate):
        raise SourceOptionsError(
            f"{reference} is not a source. Derive the class from SourceKind, and define `kind` and `open`."
        )
    return candidate
