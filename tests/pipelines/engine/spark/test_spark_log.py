"""The log of Spark: text for a terminal, JSON objects for a log collector."""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

JVM_WARNING = "WARNING: Using incubator modules"

# A JVM with the log settings of a session, without the session.
LOGGING_PROGRAM = """
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
log.info("below the level")
log.warn('a "word"\\nin two lines')
log.error("broken", gateway.jvm.java.lang.IllegalStateException("why"))
gateway.shutdown()
"""


def run_logging_program(log_format: str, folder: Path) -> list[str]:
    command = [sys.executable, "-c", LOGGING_PROGRAM, log_format, str(folder)]
    # With JDK_JAVA_OPTIONS, the JVM first prints the options.
    environment = {name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"}
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    finished = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=200
    )
    return [line for line in finished.stderr.splitlines() if not line.startswith(JVM_WARNING)]


def test_a_log_collector_gets_json_lines_with_the_fields_of_the_platform(tmp_path: Path) -> None:
    warning, error = (json.loads(line) for line in run_logging_program("json", tmp_path))
    assert datetime.fromisoformat(warning.pop("at")).utcoffset() is not None
    assert warning == {"level": "warning", "logger": "org.example.Part", "message": 'a "word"\nin two lines'}
    assert (error["level"], error["message"]) == ("error", "broken")
    assert error["exception"].startswith("java.lang.IllegalStateException: why\n")


def test_a_terminal_gets_text_lines(tmp_path: Path) -> None:
    first, second, third, *trace = run_logging_program("text", tmp_path)
    assert first.endswith('WARN  Part: a "word"')
    assert second == "in two lines"
    assert third.endswith("ERROR Part: broken")
    assert trace[0] == "java.lang.IllegalStateException: why"
