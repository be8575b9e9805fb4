"""The examples of the page about testing run as they are printed."""

import re
from pathlib import Path

import yaml

from penstock.testing.pipeline_case import run_pipeline_case

PAGE = Path(__file__).parents[3] / "pipelines" / "docs" / "testing.md"


def read_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def open_no_spark() -> None:
    raise AssertionError("the example needs no Spark")


def test_the_python_example_passes() -> None:
    namespace: dict[str, object] = {}
    example = read_blocks("python")[0]
    exec(compile(example, str(PAGE), "exec"), namespace)
    (test,) = [value for name, value in namespace.items() if name.startswith("test_") and callable(value)]
    test()


def test_the_yaml_example_passes() -> None:
    (case,) = yaml.safe_load(read_blocks("yaml")[0])
    verdict = run_pipeline_case(case, "reference", open_no_spark)  # type: ignore[arg-type]
    assert verdict.is_ok, (verdict.expected, verdict.actual)
