"""Finds user modules: a pipeline's file, and the modules that it imports and that are not installed.

Python's library, installed packages and this platform are not user modules: a process that runs does not notice
their changes. The search reads import statements, so it runs no code.
"""

import ast
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

CATALOG_PACKAGE = "penstock.pipelines.catalog"
CATALOG_FOLDER = Path(__file__).parents[1] / "pipelines" / "catalog"

DEFINITION_SUFFIXES = (".yaml", ".sql", ".py")
"""The files that may define a pipeline."""

_FUNCTION_REFERENCE = re.compile(r"\b([A-Za-z_][\w.]*):[A-Za-z_]\w*")
"""How a pipeline in YAML or SQL names a function: `module:function`."""


def find_pipeline_file(pipeline: str) -> Path | None:
    """Return the file that defines a pipeline; None if there is none of that name."""
    files = (CATALOG_FOLDER / f"{pipeline}{suffix}" for suffix in DEFINITION_SUFFIXES)
    return next((path for path in files if path.is_file()), None)


def find_user_modules(pipeline: str) -> dict[str, Path]:
    """Return every user module of a pipeline and its file, the pipeline's own first.

    Includes a file that cannot be read or parsed, but not its imports.
    """
    file = find_pipeline_file(pipeline)
    pending = [] if file is None else [(f"{CATALOG_PACKAGE}.{pipeline}", file)]
    module_files: dict[str, Path] = {}
    while pending:
        name, path = pending.pop(0)
        module_files[name] = path
        imported_modules = (
            (module, find_user_module_file(module)) for module in _iter_imported_names(path, name)
        )
        pending += [
            (module, module_file)
            for module, module_file in imported_modules
            if module_file is not None and module not in module_files
        ]
    return module_files


def is_user_module(module: str) -> bool:
    """Whether a loaded module is a user module."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and _may_be_user_module(module) and not _is_installed(Path(file))


def is_user_file(file: Path) -> bool:
    """Whether a source file is user code: neither installed, nor of Python's library, nor of the platform."""
    import penstock

    if file.is_relative_to(CATALOG_FOLDER):
        return True
    is_platform = any(file.is_relative_to(folder) for folder in penstock.__path__)
    return file.is_absolute() and not is_platform and not _is_installed(file)  # <string> is not absolute


def find_user_module_file(module: str) -> Path | None:
    """Return the file of a user module; None for any other module, and for a missing one."""
    if not _may_be_user_module(module):
        return None
    folders: Sequence[Path]
    folders = (
        [CATALOG_FOLDER] if module.startswith(f"{CATALOG_PACKAGE}.") else [Path(entry) for entry in sys.path]
    )
    file: Path | None = None
    for part in module.removeprefix(f"{CATALOG_PACKAGE}.").split("."):
        file, folders = _find_module_file(part, folders)
    return None if file is None or _is_installed(file) else file


def _find_module_file(part: str, folders: Sequence[Path]) -> tuple[Path | None, Sequence[Path]]:
    """Return the file of a module in the first folder that has it, and the folders of its submodules.

    Reads the disk each time: Python's own finders cache folders, and miss new files.
    """
    for folder in folders:
        for file, submodule_folders in (
            (folder / part / "__init__.py", [folder / part]),
            (folder / f"{part}.py", []),
        ):
            if file.is_file():
                return file, submodule_folders
    return None, [folder / part for folder in folders if (folder / part).is_dir()]


def _may_be_user_module(module: str) -> bool:
    top_package = module.partition(".")[0]
    if top_package == "penstock":
        return module.startswith(f"{CATALOG_PACKAGE}.")
    return top_package not in sys.stdlib_module_names and top_package not in ("", "__main__")


@cache
def _installed_folders() -> tuple[Path, ...]:
    return tuple({Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib", "stdlib")})


def _is_installed(file: Path) -> bool:
    return any(file.resolve().is_relative_to(folder) for folder in _installed_folders())


def _iter_imported_names(path: Path, module: str) -> Iterator[str]:
    """Yield every module that a file's imports may mean, installed ones and names that are no modules included."""
    try:
        text = path.read_text("utf-8")
        tree = ast.parse(text) if path.suffix == ".py" else None
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError):
        return
    if tree is None:
        yield from sorted(set(_FUNCTION_REFERENCE.findall(text)))
        return
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported_package = _resolve_imported_package(node, package)
            yield imported_package
            yield from (f"{imported_package}.{alias.name}" for alias in node.names)


def _resolve_imported_package(node: ast.ImportFrom, package: str) -> str:
    """Return the absolute name of the package in `from … import`."""
    if not node.level:
        return node.module or ""
    parent_packages = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*parent_packages, *([node.module] if node.module else [])])
