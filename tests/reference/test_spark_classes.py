"""The jar of the engine's Java classes is made from the sources beside it."""

import shutil
import subprocess

import pytest
from tests.reference.spark_classes import DIGEST_FILE, compile_sources, digest_sources, read_jar


def has_jdk_17() -> bool:
    """Whether this machine has the compiler that the jar was built with; another one writes other bytes."""
    if shutil.which("javac") is None:
        return False
    version = subprocess.run(["javac", "-version"], check=True, capture_output=True, text=True).stdout
    return version.startswith("javac 17.")


def test_the_jar_belongs_to_the_sources():
    digest = read_jar()[DIGEST_FILE].decode()
    assert digest == digest_sources(), "A source changed after the jar was built. Run `make jvm`."


@pytest.mark.skipif(not has_jdk_17(), reason="needs a JDK 17, as building the jar does")
def test_the_sources_compile_to_the_jar():
    classes = {name: content for name, content in read_jar().items() if name != DIGEST_FILE}
    assert compile_sources() == classes
