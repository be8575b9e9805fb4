"""The shipped pipelines, one a file: `<name>.py` holds a pipeline of the same name, `<name>.yaml` is one.

Adding a file adds the pipeline everywhere. Loading one imports nothing of Spark. Beside its pipeline a file may say
how it is shown: `demo = Demo(…)`, or a section `demo` of YAML. A file that is broken is its own pipeline's trouble:
whatever goes wrong while it is loaded is a DefinitionError that says where.
"""

import ast
import sys
import traceback
from collections.abc import Mapping
from functools import cache
from importlib import import_module, invalidate_caches
from pathlib import Path

from penstock.ingestion.contracts import load_contract
from penstock.ingestion.contracts.documents import document_in
from penstock.ingestion.errors import ContractError
from penstock.pipelines.demonstration import Demo, demo_of
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model import Pipeline, from_yaml
from penstock.pipelines.own_modules import FOLDER, own_modules
from penstock.pipelines.own_modules import file_of as found_file
from penstock.pipelines.plan.stage import Plan


def names() -> tuple[str, ...]:
    """The names of all pipelines, in order."""
    files = (path for path in FOLDER.iterdir() if path.suffix in (".py", ".yaml"))
    return tuple(sorted({path.stem for path in files if not path.stem.startswith("_")}))


@cache
def load(name: str) -> Plan:
    """The checked plan of a pipeline. Raises DefinitionError where it is not there or not right."""
    file = found_file(name)
    if file is None or name not in names():
        raise DefinitionError("stream", f"there is no pipeline {name!r}", f"There are: {', '.join(names())}")
    try:
        return _written_in(file).to_plan(name)
    except DefinitionError as problem:
        raise (problem if str(file) in problem.where else problem.located(str(file))) from None
    except ContractError as problem:
        raise DefinitionError("read", problem, "Mend that file", str(file)) from problem
    except (Exception, SystemExit) as problem:
        fix = "Mend it; what else there is goes on without it"
        raise DefinitionError(
            name, f"it cannot be loaded: {_in_words(name, problem)}", fix, str(file)
        ) from problem


def load_anew(name: str) -> Plan:
    """The same from its file as it is now, with the contracts of its topics and all modules of one's own.

    Functions that were taken from these modules before go on as they were.
    """
    load.cache_clear()
    load_contract.cache_clear()
    invalidate_caches()
    tops = {_top_of(module) for module in own_modules(name)}
    for module in [each for each in sys.modules if _top_of(each) in tops]:
        del sys.modules[module]
    return load(name)


def module_of(name: str) -> str:
    """The module that a pipeline in Python is written in."""
    return f"{__name__}.{name}"


def file_of(name: str) -> Path:
    """The file that a pipeline is written in."""
    return found_file(name) or FOLDER / f"{name}.py"


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
    file = file_of(name)
    if file.suffix == ".yaml":
        document = document_in(file)
        try:
            return demo_of(document.get("demo") if isinstance(document, Mapping) else None)
        except DefinitionError as problem:
            raise problem.located(str(file)) from None
    found = getattr(sys.modules[module_of(name)], "demo", Demo())
    if not isinstance(found, Demo):
        raise DefinitionError("demo", repr(found), "Write demo = Demo(...)", str(file))
    return found


def _top_of(module: str) -> str:
    """What is read anew together: all files of this folder, or a package of one's own with all that is in it."""
    return f"{__name__}." if module.startswith(f"{__name__}.") else module.partition(".")[0]


def _written_in(file: Path) -> Pipeline:
    if file.suffix == ".yaml":
        return from_yaml(file)
    pipeline = getattr(import_module(module_of(file.stem)), file.stem, None)
    if not isinstance(pipeline, Pipeline):
        raise DefinitionError(
            file.stem, f"{file} holds no pipeline of that name", f"Write {file.stem} = read(...) in it"
        )
    return pipeline


def _in_words(name: str, problem: BaseException) -> str:
    """What went wrong, and on which line of which file of one's own."""
    what = f"{type(problem).__name__}: {problem}"
    if isinstance(problem, SyntaxError):
        return what if problem.filename is None else f"{what} in {problem.filename}"
    files = {str(path) for path in own_modules(name).values()}
    lines = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename in files]
    if not lines:
        return what
    where = "" if lines[-1].filename == str(found_file(name)) else f" of {lines[-1].filename}"
    return f"{what}, at line {lines[-1].lineno}{where}"
