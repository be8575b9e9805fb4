"""What Spark says on its own, as lines for a terminal and as objects for a collector."""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

JAVA_ITSELF = "WARNING: Using incubator modules"

# A Java machine as a session has it, without the session: what it is told of its log is all that matters.
SAYING = """
import os, sys
from pathlib import Path
from pyspark.conf import SparkConf
from pyspark.java_gateway import launch_gateway
from penstock.infra.java import find_java
from penstock.engine.spark.session import SparkSessionConfig, build_session_settings
os.environ["JAVA_HOME"] = str(find_java().home)
config = SparkSessionConfig([], Path(sys.argv[2]), log_format=sys.argv[1])
settings = build_session_settings(config)
gateway = launch_gateway(SparkConf(loadDefaults=False).setAll(list(settings.items())))
log = gateway.jvm.org.slf4j.LoggerFactory.getLogger("org.example.Part")
log.info("too small to be told")
log.warn('a "word"\\nin two lines')
log.error("broken", gateway.jvm.java.lang.IllegalStateException("why"))
gateway.shutdown()
"""


def said(form: str, folder: Path) -> list[str]:
    words = [sys.executable, "-c", SAYING, form, str(folder)]
    # With options of its own the Java machine begins by saying which they are.
    environment = {name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"}
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=200)
    return [line for line in done.stderr.splitlines() if not line.startswith(JAVA_ITSELF)]


def test_a_collector_gets_an_object_a_line_with_the_fields_of_the_platforms_own_log(tmp_path: Path) -> None:
    warned, failed = (json.loads(line) for line in said("json", tmp_path))
    assert datetime.fromisoformat(warned.pop("at")).utcoffset() is not None
    assert warned == {"level": "warning", "logger": "org.example.Part", "message": 'a "word"\nin two lines'}
    assert (failed["level"], failed["message"]) == ("error", "broken")
    assert failed["exception"].startswith("java.lang.IllegalStateException: why\n")


def test_a_terminal_gets_lines(tmp_path: Path) -> None:
    first, second, third, *trace = said("text", tmp_path)
    assert first.endswith('WARN  Part: a "word"')
    assert second == "in two lines"
    assert third.endswith("ERROR Part: broken")
    assert trace[0] == "java.lang.IllegalStateException: why"
