"""Finds the definitions: every module of this package that has a function `build_definitions`.

A module whose definitions cannot be built, or do not fit the others, is left out and reported as a failed asset.
Everything else loads.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pkgutil import walk_packages

from dagster import AssetKey, AssetSpec, Definitions

from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.load_errors import LoadError, build_load_error_definitions

log = logging.getLogger(__name__)

PACKAGE = "penstock.platform.definitions"
LOCATION_MODULE = f"{PACKAGE}.location"
FAILED_MODULES_SENSOR = "failed_definition_modules"
DefinitionsBuilder = Callable[[DefinitionsContext], Definitions]


def find_definition_builders(package: str = PACKAGE) -> Iterator[tuple[str, DefinitionsBuilder]]:
    """Yield each module that has a function `build_definitions`, and the function, in the order of the names."""
    for name in sorted(_list_modules(package)):
        builder: DefinitionsBuilder | None = getattr(import_module(name), "build_definitions", None)
        if builder is not None:
            yield name, builder


def merge_definitions(context: DefinitionsContext, package: str = PACKAGE) -> Definitions:
    """Build the definitions of each module of a package, and merge those that fit together."""
    parts: dict[str, Definitions] = {}
    failures: list[LoadError] = []
    for module, build in find_definition_builders(package):
        try:
            parts[module] = build(context)
        except Exception as error:  # noqa: BLE001  # whatever it is, the other modules load
            failures.append(_report_failure(module, error))
    try:
        merged = _merge_loadable(list(parts.values()))
    except Exception:
        log.exception("Definitions do not fit together; adding one module after another")
        merged = _merge_one_by_one(parts, failures)
    return Definitions.merge(merged, _build_failures(failures)) if failures else merged


def _merge_one_by_one(parts: dict[str, Definitions], failures: list[LoadError]) -> Definitions:
    accepted: list[Definitions] = []
    for module, part in parts.items():
        try:
            _merge_loadable([*accepted, part])
        except Exception as error:  # noqa: BLE001  # whatever it is, the other modules load
            failures.append(_report_failure(module, error))
        else:
            accepted.append(part)
    return Definitions.merge(*accepted)


def _merge_loadable(parts: Sequence[Definitions]) -> Definitions:
    merged = Definitions.merge(*parts)
    Definitions.validate_loadable(merged)
    return merged


def _report_failure(module: str, error: Exception) -> LoadError:
    log.error("Definitions of a module left out (module=%s)", module, exc_info=error)
    name = module.rpartition(".")[2]
    message = f"{module}: {type(error).__name__}: {error}"
    return LoadError("definitions", AssetKey(["definitions", name]), message)


def _build_failures(failures: Sequence[LoadError]) -> Definitions:
    specs = [
        AssetSpec(
            failure.asset_key,
            description=f"These definitions are not shown. {failure.message}",
            group_name="definitions",
            kinds={"invalid"},
        )
        for failure in failures
    ]
    errors = build_load_error_definitions(failures, FAILED_MODULES_SENSOR)
    return Definitions.merge(Definitions(assets=specs), errors)


def _list_modules(package: str) -> Iterator[str]:
    """Yield the modules of a package and its subpackages, except the one that loads the definitions."""
    for module in walk_packages(import_module(package).__path__, f"{package}."):
        if module.name != LOCATION_MODULE:
            yield module.name
