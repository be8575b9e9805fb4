"""Finds the kinds of something: the members of packages, of installed entry points, or named as `module:name`."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from penstock.core.errors import ReferenceImportError, UnknownKindError
from penstock.core.imports import import_package_modules, import_reference
from penstock.core.names import explain_unknown_name, with_article

_LOGGER = logging.getLogger(__name__)

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class KindRegistry(Generic[Kind]):
    """The kinds of a noun, such as windows. A new kind is a new module; nothing lists them by hand.

    `name_kind` returns the name of a member of a module, or None where the member is no kind. `is_kind` decides
    for members that are named as `module:name`, which need no name of their own.
    """

    noun: str
    packages: tuple[str, ...]
    entry_point_group: str
    name_kind: Callable[[Any], str | None]
    is_kind: Callable[[Any], bool]
    how_to_define: str
    list_command: str = ""

    @cached_property
    def kinds_by_name(self) -> Mapping[str, Kind]:
        """The kinds of the packages and of entry points, sorted by name.

        An entry point that cannot be loaded is logged and skipped. It cannot replace a kind of the packages.
        """
        kinds = dict(kind for package in self.packages for kind in self._scan_package(package))
        for entry_point in entry_points(group=self.entry_point_group):
            try:
                kinds.setdefault(entry_point.name, self._require_kind(entry_point.load(), entry_point.value))
            except Exception:
                # User code can raise any exception while it is imported.
                _LOGGER.exception(
                    "Entry point not loaded (group=%s, name=%s)", self.entry_point_group, entry_point.name
                )
        return dict(sorted(kinds.items()))

    def find_kind(self, name: str) -> Kind:
        """Return the kind with this name or at this `module:name`; raise UnknownKindError if there is none."""
        if ":" in name:
            return self._import_kind(name)
        if name not in self.kinds_by_name:
            raise UnknownKindError(
                explain_unknown_name(self.noun, name, self.kinds_by_name, self.list_command)
            )
        return self.kinds_by_name[name]

    def _import_kind(self, reference: str) -> Kind:
        try:
            candidate = import_reference(reference)
        except ReferenceImportError as error:
            raise UnknownKindError(
                f"{self.noun} '{reference}' cannot be loaded: {error}. Write module:name, and check PYTHONPATH"
            ) from error
        return self._require_kind(candidate, reference)

    def _require_kind(self, candidate: Any, reference: str) -> Kind:
        if not self.is_kind(candidate):
            raise UnknownKindError(f"{reference} is not {with_article(self.noun)}. {self.how_to_define}")
        kind: Kind = candidate
        return kind

    def _scan_package(self, package_name: str) -> Iterator[tuple[str, Kind]]:
        for module in import_package_modules(package_name):
            for member in vars(module).values():
                if getattr(member, "__module__", None) == module.__name__ and (
                    name := self.name_kind(member)
                ):
                    yield name, member
