"""The shipped pipelines, one per file: `<name>.py` defines a pipeline of the same name, `<name>.yaml` is one.

Adding a file deploys the pipeline everywhere. Loading a pipeline does not import Spark. A file may also define how
to demonstrate its pipeline: `demo = Demo(...)`, or a `demo` section in YAML. A broken file affects only its own
pipeline: any failure to load it raises a DefinitionError that names the file and line.
"""

import ast
import sys
import traceback
from collections.abc import Mapping
from functools import cache
from importlib import import_module, invalidate_caches
from pathlib import Path

from penstock.core.names import explain_unknown_name
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.stages import Plan
from penstock.engine.user_modules import CATALOG_FOLDER, find_pipeline_file, find_user_modules
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.contracts.yaml_files import read_yaml
from penstock.ingestion.errors import ContractError
from penstock.pipelines.demonstration import Demo, parse_demo
from penstock.stream import Pipeline, from_yaml


def pipeline_names() -> tuple[str, ...]:
    """Return the names of all pipelines, sorted."""
    files = (path for path in CATALOG_FOLDER.iterdir() if path.suffix in (".py", ".yaml"))
    return tuple(sorted({path.stem for path in files if not path.stem.startswith("_")}))


@cache
def load_plan(name: str) -> Plan:
    """Return the validated plan of a pipeline. Raises DefinitionError if it is unknown or invalid."""
    file = find_pipeline_file(name)
    if file is None or name not in pipeline_names():
        unknown_text = explain_unknown_name("pipeline", name, pipeline_names())
        raise DefinitionError("stream", unknown_text, "`penstock demo --list` lists all pipelines")
    try:
        return _load_pipeline(file).to_plan(name)
    except DefinitionError as problem:
        raise (problem if str(file) in problem.location else problem.with_location(str(file))) from None
    except ContractError as problem:
        raise DefinitionError("read", problem, "Fix the contract file", str(file)) from problem
    except (Exception, SystemExit) as problem:
        fix = "Fix the file; other pipelines are not affected"
        raise DefinitionError(
            name, f"cannot be loaded: {_describe_failure(name, problem)}", fix, str(file)
        ) from problem


def reload_plan(name: str) -> Plan:
    """Load the plan from the current files: the pipeline, the contracts of its topics and its user modules.

    Functions that were imported from these modules earlier stay unchanged.
    """
    load_plan.cache_clear()
    load_contract.cache_clear()
    invalidate_caches()
    reload_roots = {_reload_root(module) for module in find_user_modules(name)}
    for module in [
        loaded_module for loaded_module in sys.modules if _reload_root(loaded_module) in reload_roots
    ]:
        del sys.modules[module]
    return load_plan(name)


def pipeline_module(name: str) -> str:
    """Return the module name of a pipeline in Python."""
    return f"{__name__}.{name}"


def pipeline_file(name: str) -> Path:
    """Return the file that defines a pipeline."""
    return find_pipeline_file(name) or CATALOG_FOLDER / f"{name}.py"


def read_description(name: str) -> str:
    """Return the description at the top of a pipeline's file."""
    text = pipeline_file(name).read_text("utf-8")
    if pipeline_file(name).suffix == ".py":
        return ast.get_docstring(ast.parse(text)) or ""
    lines = text.splitlines()
    comment_lines = lines[: next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))]
    return "\n".join(line.removeprefix("#").strip() for line in comment_lines)


def load_demo(name: str) -> Demo:
    """Return the demo settings of a pipeline, or the defaults."""
    load_plan(name)
    file = pipeline_file(name)
    if file.suffix == ".yaml":
        document = read_yaml(file)
        try:
            return parse_demo(document.get("demo") if isinstance(document, Mapping) else None)
        except DefinitionError as problem:
            raise problem.with_location(str(file)) from None
    demo = getattr(sys.modules[pipeline_module(name)], "demo", Demo())
    if not isinstance(demo, Demo):
        raise DefinitionError("demo", repr(demo), "Write demo = Demo(...)", str(file))
    return demo


def _reload_root(module: str) -> str:
    """Return the unit that is reloaded together: this folder, or a top-level package of user code."""
    return f"{__name__}." if module.startswith(f"{__name__}.") else module.partition(".")[0]


def _load_pipeline(file: Path) -> Pipeline:
    if file.suffix == ".yaml":
        return from_yaml(file)
    pipeline = getattr(import_module(pipeline_module(file.stem)), file.stem, None)
    if not isinstance(pipeline, Pipeline):
        raise DefinitionError(
            file.stem, f"{file} defines no pipeline of this name", f"Define {file.stem} = read(...) in it"
        )
    return pipeline


def _describe_failure(name: str, problem: BaseException) -> str:
    """Describe an error, with the file and line of the user code that raised it."""
    failure = f"{type(problem).__name__}: {problem}"
    if isinstance(problem, SyntaxError):
        return failure if problem.filename is None else f"{failure} in {problem.filename}"
    files = {str(path) for path in find_user_modules(name).values()}
    user_frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename in files]
    if not user_frames:
        return failure
    file_note = (
        "" if user_frames[-1].filename == str(find_pipeline_file(name)) else f" of {user_frames[-1].filename}"
    )
    return f"{failure}, at line {user_frames[-1].lineno}{file_note}"
