"""Modules of one's own: which they are, and that a change in one of them is taken up and told."""

from pathlib import Path

from tests.catalogs import WriteCatalogFile

from penstock.engine.plan import Plan, fingerprint
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


def written(write: WriteCatalogFile, *, limit: int = 1, column: str = "a", freezing: int = 0) -> Plan:
    write("one.py", PIPELINE)
    write("_shared.py", SHARED.format(limit=limit))
    write("../acme/__init__.py", "")
    write("../acme/rules.py", RULES.format(column=column))
    write("../acme/limits.py", LIMITS.format(freezing=freezing))
    return catalog.reload_plan("one")


def test_one_s_own_modules_are_found_through_all_imports_and_installed_ones_are_left_out(
    write: WriteCatalogFile,
) -> None:
    written(write)
    found = find_user_modules("one")
    package = catalog.__name__
    assert list(found) == [f"{package}.one", f"{package}._shared", "acme.limits", "acme.rules"]
    assert all(path.is_file() for path in found.values())


def test_functions_that_yaml_names_are_followed(write: WriteCatalogFile) -> None:
    write("../acme/__init__.py", "")
    helper = write("../acme/steps.py", "from . import more\n\n\ndef clean(frame):\n    return frame\n")
    more = write("../acme/more.py", "")
    file = write("two.yaml", "read: sensors\nsteps: {apply: acme.steps:clean}\n")
    assert [path for path in resolved(find_user_modules("two")) if path.name != "__init__.py"] == resolved(
        {"two": file, "steps": helper, "more": more}
    )


def resolved(modules: dict[str, Path]) -> list[Path]:
    return [path.resolve() for path in modules.values()]


def test_a_file_that_is_not_python_counts_and_a_pipeline_that_is_not_there_has_none(
    write: WriteCatalogFile,
) -> None:
    file = write("broken.py", "x = (")
    assert list(find_user_modules("broken").values()) == [file]
    assert find_user_modules("nobody") == {}


def test_a_change_anywhere_in_one_s_own_code_is_a_change_of_the_pipeline(write: WriteCatalogFile) -> None:
    plans = [written(write), written(write), written(write, limit=2), written(write, column="b")]
    plans.append(written(write, freezing=3))
    assert fingerprint(plans[0]) == fingerprint(plans[1])
    assert len({fingerprint(plan) for plan in plans}) == 4
    (told,) = compare_plans(plans[0], plans[-1]).differences
    assert told.subject == "steps"


def test_functions_that_were_taken_before_go_on_as_they_were(write: WriteCatalogFile) -> None:
    (step,) = written(write, freezing=0).only_stage.steps
    function = step.function.resolve()  # type: ignore[union-attr]
    written(write, freezing=100)
    assert function(Frame()) is True


class Frame:
    """Says what it was asked last."""

    def where(self, condition: object) -> object:
        return self if isinstance(condition, str) else condition
