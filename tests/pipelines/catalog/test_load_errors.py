"""A pipeline that cannot be loaded is reported in one sentence with its file. Other pipelines load."""

import threading
from textwrap import dedent

import pytest
from tests.catalogs import PIPELINE_TEMPLATE, WriteCatalogFile

from penstock.engine.errors import DefinitionError
from penstock.pipelines import catalog, guarded_load

FIX = "Fix the file; other pipelines are not affected"
BROKEN = {
    "a syntax error": ("x = (", f"broken.py:1: SyntaxError: '(' was never closed. {FIX}"),
    "a missing import": (
        "import missing_module",
        f"broken.py:1: ModuleNotFoundError: No module named 'missing_module'. {FIX}",
    ),
    "a missing import of a helper": (
        "\nfrom broken_helper import x",
        "broken_helper.py:1: ModuleNotFoundError: No module named 'missing_module' (imported by ",
    ),
    "an exception": ("x = 1\n1 / 0", f"broken.py:2: ZeroDivisionError: division by zero. {FIX}"),
    "an exit": ("import sys\nsys.exit(3)", f"broken.py:2: SystemExit: 3. {FIX}"),
    "an error that is no exception": (
        "class Stop(BaseException): ...\nraise Stop('now')",
        f"broken.py:2: Stop: now. {FIX}",
    ),
    "an interrupt": (
        "raise KeyboardInterrupt",
        f"broken.py: RuntimeError: the file raises KeyboardInterrupt. {FIX}",
    ),
    "no pipeline of its name": (
        "other = 1",
        "broken.py: broken: the file defines no pipeline of this name. Define broken = read(...) in the file",
    ),
    "a topic without contract": (
        "from penstock.stream import read\n\nbroken = read('nothing')",
        "broken.py:3: read: there is no contract for 'nothing'. Known topics: ",
    ),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_named_and_other_files_are_loaded(
    write: WriteCatalogFile, text: str, message: str
) -> None:
    write("good.py", PIPELINE_TEMPLATE.format(name="good"))
    write("../broken_helper.py", "import missing_module")
    file = write("broken.py", text)
    with pytest.raises(DefinitionError) as raised:
        catalog.reload_plan("broken")
    assert message in str(raised.value)
    assert str(file.parent.parent) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert catalog.reload_plan("good").name == "good"


def test_a_binary_file_is_named_in_its_error(write: WriteCatalogFile) -> None:
    write("broken.yaml", "").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DefinitionError, match=r"broken\.yaml"):
        catalog.reload_plan("broken")


def test_a_fixed_file_is_loaded_and_so_is_one_with_a_fixed_helper(write: WriteCatalogFile) -> None:
    write("one.py", "one = ")
    write("_shared.py", "1 / 0")
    write(
        "two.py",
        "    from penstock.pipelines.catalog._shared import STEP" + PIPELINE_TEMPLATE.format(name="two"),
    )
    for name in ("one", "two"):
        with pytest.raises(DefinitionError):
            catalog.reload_plan(name)
    write("one.py", PIPELINE_TEMPLATE.format(name="one"))
    write("_shared.py", "STEP = 1")
    assert {catalog.reload_plan(name).name for name in ("one", "two")} == {"one", "two"}


def test_a_file_that_does_not_end_is_stopped_and_named_once(
    write: WriteCatalogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded_load, "IMPORT_TIMEOUT_S", 0.5)
    write("good.py", PIPELINE_TEMPLATE.format(name="good"))
    file = write("endless.py", "x = 1\nwhile True:\n    pass")
    for _ in range(2):  # the second time, the file is not run again
        with pytest.raises(
            DefinitionError, match=r"endless\.py:[23]: the file: its code did not end within 0.5 s"
        ):
            catalog.reload_plan("endless")
    (thread,) = [t for t in threading.enumerate() if t.name == "load of endless.py"] or [None]
    if thread is not None:
        thread.join(10)
    assert not [t for t in threading.enumerate() if t.name == "load of endless.py"]
    assert catalog.reload_plan("good").name == "good"
    file.write_text(dedent(PIPELINE_TEMPLATE.format(name="endless")))
    assert catalog.reload_plan("endless").name == "endless"


def test_two_files_of_one_pipeline_are_both_named(write: WriteCatalogFile) -> None:
    write("twice.py", PIPELINE_TEMPLATE.format(name="twice"))
    write("twice.yaml", "read: sensors")
    with pytest.raises(DefinitionError, match=r"twice\.py and .*twice\.yaml both define pipeline twice"):
        catalog.reload_plan("twice")
