"""Modules of user code: how they are found, and that a change in one is a change of the pipeline."""

from pathlib import Path

from tests.catalogs import WriteCatalogFile

from penstock.engine.plan.codec import fingerprint
from penstock.engine.plan.stages import Plan
from penstock.engine.upgrade.plan_comparison import compare_plans
from penstock.engine.user_modules import find_user_modules
from penstock.pipelines import catalog

PIPELINE = """
    from penstock.pipelines.catalog._shared import clean
    from penstock.stream import count, fixed, read

    one = read("sensors").apply(clean).aggregate(n=count()).window(fixed("1 minute")).write("one")
"""
SHARED = """
    import acme.limits
    from acme.rules import Rule


    def clean(frame):
        return Rule().of(frame).where(acme.limits.warm({limit}))
"""
RULES = """
    class Rule:
        column = "{column}"

        def of(self, frame):
            return frame.where(self.column)
"""
LIMITS = """
    import numpy

    FREEZING = {freezing}


    def warm(limit):
        return limit > FREEZING
"""


def write_pipeline(write: WriteCatalogFile, *, limit: int = 1, column: str = "a", freezing: int = 0) -> Plan:
    write("one.py", PIPELINE)
    write("_shared.py", SHARED.format(limit=limit))
    write("../acme/__init__.py", "")
    write("../acme/rules.py", RULES.format(column=column))
    write("../acme/limits.py", LIMITS.format(freezing=freezing))
    return catalog.reload_plan("one")


def test_user_modules_are_found_through_imports_without_installed_ones(
    write: WriteCatalogFile,
) -> None:
    write_pipeline(write)
    modules = find_user_modules("one")
    package = catalog.__name__
    assert list(modules) == [f"{package}.one", f"{package}._shared", "acme.limits", "acme.rules"]
    assert all(path.is_file() for path in modules.values())


def test_functions_that_yaml_names_are_followed(write: WriteCatalogFile) -> None:
    write("../acme/__init__.py", "")
    helper = write("../acme/steps.py", "from . import more\n\n\ndef clean(frame):\n    return frame\n")
    more = write("../acme/more.py", "")
    file = write("two.yaml", "read: sensors\nsteps: {apply: acme.steps:clean}\n")
    assert [
        path for path in resolve_paths(find_user_modules("two")) if path.name != "__init__.py"
    ] == resolve_paths({"two": file, "steps": helper, "more": more})


def resolve_paths(modules: dict[str, Path]) -> list[Path]:
    return [path.resolve() for path in modules.values()]


def test_a_broken_file_is_a_user_module_and_an_unknown_pipeline_has_none(
    write: WriteCatalogFile,
) -> None:
    file = write("broken.py", "x = (")
    assert list(find_user_modules("broken").values()) == [file]
    assert find_user_modules("nobody") == {}


def test_a_change_in_any_user_module_changes_the_plan(write: WriteCatalogFile) -> None:
    plans = [
        write_pipeline(write),
        write_pipeline(write),
        write_pipeline(write, limit=2),
        write_pipeline(write, column="b"),
    ]
    plans.append(write_pipeline(write, freezing=3))
    assert fingerprint(plans[0]) == fingerprint(plans[1])
    assert len({fingerprint(plan) for plan in plans}) == 4
    (difference,) = compare_plans(plans[0], plans[-1]).differences
    assert difference.subject == "steps"


def test_functions_that_were_loaded_before_stay_unchanged(write: WriteCatalogFile) -> None:
    (step,) = write_pipeline(write, freezing=0).only_stage.steps
    function = step.function.resolve()  # type: ignore[union-attr]
    write_pipeline(write, freezing=100)
    assert function(Frame()) is True


class Frame:
    """Returns the last condition that is not text."""

    def where(self, condition: object) -> object:
        return self if isinstance(condition, str) else condition
