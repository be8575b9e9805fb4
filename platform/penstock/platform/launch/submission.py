"""The command, environment and properties of spark-submit, built from settings."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.spark.session import build_session_settings
from penstock.infra.java import find_java
from penstock.infra.local.spark_cluster import find_spark_home
from penstock.infra.readiness import READY_FILE_VARIABLE
from penstock.platform.errors import SettingsError
from penstock.platform.host.composition import spark_config
from penstock.platform.launch import application
from penstock.platform.settings import Settings
from penstock.platform.settings.environment_variables import HOST_SECTIONS, settings_to_variables
from penstock.platform.settings.launch_rules import is_managed_master

LOCAL_DRIVER_PROPERTIES = {"spark.driver.bindAddress", "spark.driver.host", "spark.local.dir"}
"""Properties that a cluster sets for a driver that it runs itself."""


@dataclass(frozen=True)
class SparkSubmission:
    """A call of spark-submit; `properties` go to a private file, because they may contain a secret."""

    command: Sequence[str]
    environment: Mapping[str, str]
    properties: str


def build_submission(settings: Settings, properties_file: Path, token_file: Path) -> SparkSubmission:
    """Build the call that runs the host with `properties_file` for as long as `token_file` exists."""
    spark = settings.spark
    is_client_mode = spark.deploy_mode == "client"
    application_path = str(Path(application.__file__).resolve())
    command = (
        str(find_spark_home() / "bin" / "spark-submit"),
        *(
            "--master",
            spark.master,
            "--deploy-mode",
            spark.deploy_mode,
            "--properties-file",
            str(properties_file),
        ),
        *(application_path if is_client_mode else f"local://{application_path}", str(token_file)),
    )
    python_variables = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environment = {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(find_spark_home()),
        **python_variables,
    }
    variables = settings_to_variables(settings, HOST_SECTIONS)
    if is_client_mode:
        environment |= variables | {"SPARK_LOCAL_IP": spark.driver_host}
    properties = {
        **_session_properties(settings),
        **({} if is_client_mode else _driver_variables(spark.master, {**variables, **python_variables})),
    }
    return SparkSubmission(
        command,
        environment,
        _format_properties(properties) + _read_private_properties(settings) + _read_user_properties(settings),
    )


def _session_properties(settings: Settings) -> dict[str, str]:
    """Return the properties of a session in this process, except those that the cluster decides."""
    spark = settings.spark
    properties = build_session_settings(spark_config(settings))
    if spark.deploy_mode == "cluster":
        properties = {
            name: value for name, value in properties.items() if name not in LOCAL_DRIVER_PROPERTIES
        }
    if is_managed_master(spark.master):
        properties |= {"spark.executor.instances": str(spark.host_cores), "spark.executor.cores": "1"}
    return properties


def _driver_variables(master: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a driver that the cluster runs; it reports readiness by the parent's ready file."""
    prefix = "spark.yarn.appMasterEnv" if master == "yarn" else "spark.kubernetes.driverEnv"
    ready_variable = (
        {READY_FILE_VARIABLE: os.environ[READY_FILE_VARIABLE]} if READY_FILE_VARIABLE in os.environ else {}
    )
    return {f"{prefix}.{name}": value for name, value in {**variables, **ready_variable}.items()}


def _format_properties(properties: Mapping[str, str]) -> str:
    return "".join(f"{name} {_escape_value(value)}\n" for name, value in properties.items())


def _escape_value(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _read_private_properties(settings: Settings) -> str:
    """Return the secret of a secured master, from the file that a session also reads."""
    private_file = spark_config(settings).secret_settings_file
    return private_file.read_text("utf-8") if private_file else ""


def _read_user_properties(settings: Settings) -> str:
    """Return the user's own Spark properties; they come last, and the last value of a name wins."""
    if not settings.spark.properties:
        return ""
    properties_file = settings.root / Path(settings.spark.properties).expanduser()
    try:
        return properties_file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise SettingsError(
            f"spark.properties names {properties_file}, which cannot be read: {problem}. Correct or unset it"
        ) from None
