"""The shipped pipelines, one per file: `<name>.py` defines a pipeline of its name, `<name>.yaml` or `.sql` is one.

Adding a file deploys the pipeline everywhere. Loading a pipeline does not import Spark. A file may also define how
to demonstrate its pipeline: `demo = Demo(...)`, a `demo` section in YAML, or options `demo.rate` in SQL. A broken
file affects only its own pipeline: any failure to load it raises a DefinitionError that names the file and line.
"""

import ast
import glob
import re
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module, invalidate_caches
from itertools import takewhile
from pathlib import Path

from penstock.core.display_path import display_path
from penstock.core.names import explain_unknown_name
from penstock.engine.errors import DefinitionError, UnknownNameError
from penstock.engine.plan.stages import Plan
from penstock.engine.user_modules import (
    CATALOG_FOLDER,
    DEFINITION_SUFFIXES,
    find_pipeline_file,
    find_user_modules,
)
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.contracts.yaml_files import read_yaml
from penstock.ingestion.errors import ContractError
from penstock.pipelines.demonstration import Demo, parse_demo
from penstock.pipelines.guarded_load import run_guarded
from penstock.pipelines.load_failures import describe_failure, locate_failure
from penstock.stream import Pipeline, from_sql, from_yaml
from penstock.stream.problem_lines import locate_problems


def pipeline_names() -> tuple[str, ...]:
    """Return the names of all pipelines, sorted."""
    files = (path for path in CATALOG_FOLDER.iterdir() if path.suffix in DEFINITION_SUFFIXES)
    return tuple(sorted({path.stem for path in files if not path.stem.startswith("_")}))


def is_pipeline_name(name: str) -> bool:
    """Whether a pipeline may have this name: Python, Dagster, Kafka and file systems all accept it."""
    return name.isascii() and name.isidentifier()


def to_pipeline_name(name: str) -> str:
    """Return a valid name that is like an invalid one."""
    return re.sub(r"\W|^(?=\d)", "_", name, flags=re.ASCII)


@cache
def load_plan(name: str) -> Plan:
    """Return the validated plan of a pipeline. Raises DefinitionError if it is unknown or invalid."""
    file = find_pipeline_file(name)
    if name not in pipeline_names():
        raise unknown_pipeline(name)
    if file is None:
        link = next(CATALOG_FOLDER.glob(f"{glob.escape(name)}.*"))
        raise DefinitionError("the file", "it cannot be read", "Remove or fix the link", display_path(link))
    user_files = list(find_user_modules(name).values())
    try:
        _refuse_second_file(name)
        return run_guarded(lambda: _load_pipeline(file).to_plan(name), file, user_files)
    except DefinitionError as problem:
        raise locate_failure(problem, file, user_files) from None
    except ContractError as problem:
        raise DefinitionError("read", problem, "Fix the contract file", display_path(file)) from problem
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        raise describe_failure(problem, file, user_files) from problem


def _refuse_second_file(name: str) -> None:
    """Raise DefinitionError if several files define a pipeline: none is preferred in silence."""
    candidates = (CATALOG_FOLDER / f"{name}{suffix}" for suffix in sorted(DEFINITION_SUFFIXES))
    files = [file for file in candidates if file.is_file()]
    if len(files) > 1:
        first, second = files[:2]
        problem = f"{display_path(first)} and {display_path(second)} both define pipeline {name}"
        raise DefinitionError("the file", problem, "Remove or rename one of them", display_path(first))


def unknown_pipeline(name: str) -> DefinitionError:
    """Return the error of a pipeline that does not exist, with the nearest name."""
    unknown_text = explain_unknown_name("pipeline", name, pipeline_names())
    return UnknownNameError("stream", unknown_text, "`penstock demo --list` lists all pipelines", name=name)


def reload_plan(name: str) -> Plan:
    """Load the plan from the current files: the pipeline, the contracts of its topics and its user modules.

    Functions that were imported from these modules earlier stay unchanged.
    """
    load_plan.cache_clear()
    load_contract.cache_clear()
    invalidate_caches()
    reload_roots = {_reload_root(module) for module in find_user_modules(name)}
    for module in [
        # A copy, since other threads import meanwhile.
        loaded_module
        for loaded_module in list(sys.modules)
        if _reload_root(loaded_module) in reload_roots
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
    mark = "--" if pipeline_file(name).suffix == ".sql" else "#"
    comment_lines = takewhile(lambda line: line.startswith(mark), text.splitlines())
    return "\n".join(line.removeprefix(mark).strip() for line in comment_lines)


def load_demo(name: str) -> Demo:
    """Return the demo settings of a pipeline, or the defaults."""
    load_plan(name)
    file = pipeline_file(name)
    if file.suffix != ".py":
        document = _read_document(file)
        try:
            return parse_demo(document.get("demo") if isinstance(document, Mapping) else None)
        except DefinitionError as problem:
            raise locate_problems(problem, file) from None
    demo = getattr(sys.modules[pipeline_module(name)], "demo", Demo())
    if not isinstance(demo, Demo):
        raise DefinitionError("demo", repr(demo), "Write demo = Demo(...)", display_path(file))
    return demo


def _read_document(file: Path) -> object:
    """Return the document of a pipeline in YAML or SQL."""
    if file.suffix == ".yaml":
        return read_yaml(file)
    from penstock.stream.sql_loader.document import read_sql_document  # imports sqlglot

    return read_sql_document(file)


def load_pipeline(name: str) -> Pipeline:
    """Return the definition of a pipeline, as it is written. Raises DefinitionError if it is unknown or invalid."""
    load_plan(name)
    return _load_pipeline(pipeline_file(name))


def _reload_root(module: str) -> str:
    """Return the unit that is reloaded together: this folder, or a top-level package of user code."""
    return f"{__name__}." if module.startswith(f"{__name__}.") else module.partition(".")[0]


def _load_pipeline(file: Path) -> Pipeline:
    name = file.stem
    if not is_pipeline_name(name):
        fix = f"Rename it to {to_pipeline_name(name)}{file.suffix}: names have letters, digits and _"
        raise DefinitionError("the file", f"{name!r} is not a valid name of a pipeline", fix)
    if file.suffix != ".py":
        return from_sql(file) if file.suffix == ".sql" else from_yaml(file)
    module = import_module(pipeline_module(name))
    pipeline = getattr(module, name, None)
    if not isinstance(pipeline, Pipeline):
        others = [key for key, value in vars(module).items() if isinstance(value, Pipeline)]
        suggestion = f"{others[0]!r} is a pipeline: rename it, or the file" if others else ""
        fix = suggestion or f"Define {name} = read(...) in the file"
        raise DefinitionError(name, "the file defines no pipeline of this name", fix, display_path(file))
    return pipeline
