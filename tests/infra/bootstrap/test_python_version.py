"""Python versions that the bootstrap script refuses."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("version", "advice"),
    [("3, 9, 2", "apt-get install python3 python3-venv"), ("3, 14, 0", "uv python install 3.13")],
)
def test_an_unsupported_python_is_refused_with_advice(
    pytestconfig: pytest.Config, tmp_path: Path, version: str, advice: str
) -> None:
    script = pytestconfig.rootpath / "infra" / "bootstrap.py"
    code = (
        f"import sys, runpy; sys.version_info = ({version}); sys.argv = ['x']\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert advice in result.stderr


def test_an_old_python_is_refused_with_the_supported_versions(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    script = pytestconfig.rootpath / "infra" / "bootstrap.py"
    code = (
        "import sys, runpy; sys.version_info = (3, 9, 2); sys.argv = ['x']\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "Python 3.11, 3.12 or 3.13 is needed" in result.stderr
    assert "is 3.9 and no other is on PATH" in result.stderr
