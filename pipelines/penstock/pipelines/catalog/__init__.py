"""The shipped pipelines, one a file: `<name>.py` holds a pipeline of the same name, `<name>.yaml` is one.

Adding a file adds the pipeline everywhere. Loading one imports nothing of Spark. Beside its pipeline a file may say
how it is shown: `demo = Demo(…)`.
"""

import ast
import sys
from functools import cache
from importlib import import_module, invalidate_caches, reload
from pathlib import Path

from penstock.pipelines.demonstration import Demo
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model import Pipeline, from_yaml
from penstock.pipelines.plan.stage import Plan

FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """The names of all pipelines, in order."""
    files = (path for path in FOLDER.iterdir() if path.suffix in (".py", ".yaml"))
    return tuple(sorted({path.stem for path in files if not path.stem.startswith("_")}))


@cache
def load(name: str) -> Plan:
    """The checked plan of a pipeline. Raises DefinitionError where it is not there or not right."""
    document = FOLDER / f"{name}.yaml"
    if document.exists():
        return from_yaml(document).to_plan(name)
    if name not in names():
        raise DefinitionError("stream", f"there is no pipeline {name!r}", f"There are: {', '.join(names())}")
    pipeline = getattr(import_module(f"{__name__}.{name}"), name, None)
    if not isinstance(pipeline, Pipeline):
        file = FOLDER / f"{name}.py"
        raise DefinitionError(
            name, f"{file} holds no pipeline of that name", f"Write {name} = read(...) in it"
        )
    return pipeline.to_plan(name)


def load_anew(name: str) -> Plan:
    """The same from its file as it is now. What the file imports from elsewhere is as it was when first loaded."""
    load.cache_clear()
    invalidate_caches()
    if name in names() and (module := sys.modules.get(module_of(name))):
        reload(module)
    return load(name)


def module_of(name: str) -> str:
    """The module that a pipeline in Python is written in."""
    return f"{__name__}.{name}"


def file_of(name: str) -> Path:
    """The file that a pipeline is written in."""
    document = FOLDER / f"{name}.yaml"
    return document if document.exists() else FOLDER / f"{name}.py"


def about(name: str) -> str:
    """What a pipeline's file says of it at its top."""
    text = file_of(name).read_text("utf-8")
    if file_of(name).suffix == ".py":
        return ast.get_docstring(ast.parse(text)) or ""
    lines = text.splitlines()
    said = lines[: next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))]
    return "\n".join(line.removeprefix("#").strip() for line in said)


def demonstration(name: str) -> Demo:
    """How a pipeline is shown: as its file says, or as any is."""
    load(name)
    if file_of(name).suffix == ".yaml":
        return Demo()
    found = getattr(sys.modules[module_of(name)], "demo", Demo())
    if not isinstance(found, Demo):
        raise DefinitionError("demo", repr(found), "Write demo = Demo(...)", str(file_of(name)))
    return found
