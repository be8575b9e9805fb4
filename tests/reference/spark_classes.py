"""Builds the jar of the engine's Java classes: `python -m tests.reference.spark_classes`, or `make jvm`.

It needs a JDK of version 17. The jar is part of the repository, because users have no compiler. The same sources
give the same bytes.
"""

import hashlib
import importlib.util
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from penstock.engine.spark.jvm.classes import SPARK_CLASSES_JAR

SOURCE_FOLDER = SPARK_CLASSES_JAR.with_name("sources")
DIGEST_FILE = "META-INF/penstock-sources.sha256"
_FIXED_DATE = (2026, 1, 1, 0, 0, 0)


def compile_sources() -> Mapping[str, bytes]:
    """Compile the sources; return the class files by path."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    class_path = Path(spec.origin).parent / "jars" / "*"
    sources = map(str, sorted(SOURCE_FOLDER.glob("*.java")))
    with tempfile.TemporaryDirectory() as scratch:
        command = ["javac", "--release", "17", "-proc:none", "-cp", str(class_path), "-d", scratch, *sources]
        subprocess.run(command, check=True)
        paths = sorted(Path(scratch).rglob("*.class"))
        return {str(path.relative_to(scratch)): path.read_bytes() for path in paths}


def digest_sources() -> str:
    """Return the SHA-256 of all sources, which the jar holds."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE_FOLDER.glob("*.java")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def write_jar() -> None:
    """Write the jar."""
    with zipfile.ZipFile(SPARK_CLASSES_JAR, "w", zipfile.ZIP_STORED) as jar:
        for name, content in {DIGEST_FILE: digest_sources().encode(), **compile_sources()}.items():
            jar.writestr(zipfile.ZipInfo(name, _FIXED_DATE), content)


def read_jar() -> Mapping[str, bytes]:
    """Return the files of the jar by path."""
    with zipfile.ZipFile(SPARK_CLASSES_JAR) as jar:
        return {name: jar.read(name) for name in jar.namelist()}


if __name__ == "__main__":
    write_jar()
