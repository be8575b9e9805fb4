"""The modules that one's own code stands in: a pipeline's file, and what it imports that nobody installed.

Python's library, installed packages and this platform are not one's own: what changes in them is taken up by
processes that start afterwards. One's own are found by reading import statements, so nothing is run to find them.
"""

import ast
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

CATALOG = "penstock.pipelines.catalog"
FOLDER = Path(__file__).parent / "catalog"

_REFERENCE = re.compile(r"\b([A-Za-z_][\w.]*):[A-Za-z_]\w*")
"""How a pipeline in YAML names a function: `module:function`."""


def file_of(pipeline: str) -> Path | None:
    """The file that a pipeline is written in; None where there is none of that name."""
    files = (FOLDER / f"{pipeline}{suffix}" for suffix in (".yaml", ".py"))
    return next((path for path in files if path.is_file()), None)


def own_modules(pipeline: str) -> dict[str, Path]:
    """Every module of one's own that a pipeline is made of, and its file; the pipeline's own comes first.

    A file that cannot be read or parsed counts, and what it would import does not.
    """
    file = file_of(pipeline)
    waiting = [] if file is None else [(f"{CATALOG}.{pipeline}", file)]
    found: dict[str, Path] = {}
    while waiting:
        name, path = waiting.pop(0)
        found[name] = path
        reached = ((module, own_file(module)) for module in _named_in(path, name))
        waiting += [(module, at) for module, at in reached if at is not None and module not in found]
    return found


def is_own(module: str) -> bool:
    """Whether a module that is loaded is one's own."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and _may_be_own(module) and not _is_installed(Path(file))


def own_file(module: str) -> Path | None:
    """The file of a module of one's own; None for every other, and for one that is not there."""
    if not _may_be_own(module):
        return None
    folders: Sequence[Path]
    folders = [FOLDER] if module.startswith(f"{CATALOG}.") else [Path(entry) for entry in sys.path]
    file: Path | None = None
    for part in module.removeprefix(f"{CATALOG}.").split("."):
        file, folders = _found(part, folders)
    return None if file is None or _is_installed(file) else file


def _found(part: str, folders: Sequence[Path]) -> tuple[Path | None, Sequence[Path]]:
    """The file of a module in the first of the folders that has it, and where what is inside it would be.

    Looks at the disk each time: Python's own finders remember what they saw, and miss what was just made.
    """
    for folder in folders:
        for file, inside in (folder / part / "__init__.py", [folder / part]), (folder / f"{part}.py", []):
            if file.is_file():
                return file, inside
    return None, [folder / part for folder in folders if (folder / part).is_dir()]


def _may_be_own(module: str) -> bool:
    top = module.partition(".")[0]
    if top == "penstock":
        return module.startswith(f"{CATALOG}.")
    return top not in sys.stdlib_module_names and top not in ("", "__main__")


@cache
def _installed() -> tuple[Path, ...]:
    return tuple({Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib", "stdlib")})


def _is_installed(file: Path) -> bool:
    return any(file.resolve().is_relative_to(folder) for folder in _installed())


def _named_in(path: Path, module: str) -> Iterator[str]:
    """Every module that a file may mean by its imports, installed ones and names that are no modules included."""
    try:
        text = path.read_text("utf-8")
        tree = ast.parse(text) if path.suffix == ".py" else None
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError):
        return
    if tree is None:
        yield from sorted(set(_REFERENCE.findall(text)))
        return
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            beginning = _beginning(node, package)
            yield beginning
            yield from (f"{beginning}.{alias.name}" for alias in node.names)


def _beginning(node: ast.ImportFrom, package: str) -> str:
    """What a `from … import` names, written out where it has leading dots."""
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])
