"""What spark-submit is told, decided from settings."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.infra.java import find_java
from penstock.infra.local.spark import spark_home
from penstock.infra.readiness import READY_FILE
from penstock.pipelines.spark.session import settings as of_a_session
from penstock.platform.errors import SettingsError
from penstock.platform.host.compose import spark_config
from penstock.platform.launch import application
from penstock.platform.settings import Settings
from penstock.platform.settings.launching import is_managed
from penstock.platform.settings.variables import FOR_HOST, as_variables

OF_THIS_MACHINE = {"spark.driver.bindAddress", "spark.driver.host", "spark.local.dir"}
"""What a cluster decides for a driver that it runs itself."""


@dataclass(frozen=True)
class Submission:
    """A call of spark-submit; `properties` are for a file, because a secret may be among them."""

    command: Sequence[str]
    environment: Mapping[str, str]
    properties: str


def submission(settings: Settings, file: Path, word: Path) -> Submission:
    """Decide how the host is submitted: its properties in `file`, running for as long as there is `word`."""
    spark = settings.spark
    here = spark.deploy_mode == "client"
    place = str(Path(application.__file__).resolve())
    command = (
        str(spark_home() / "bin" / "spark-submit"),
        *("--master", spark.master, "--deploy-mode", spark.deploy_mode, "--properties-file", str(file)),
        *(place if here else f"local://{place}", str(word)),
    )
    told = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    around = {"JAVA_HOME": str(find_java().home), "SPARK_HOME": str(spark_home()), **told}
    variables = as_variables(settings, FOR_HOST)
    if here:
        around |= variables | {"SPARK_LOCAL_IP": spark.driver_host}
    lines = {**_told(settings), **({} if here else _for_driver(spark.master, {**variables, **told}))}
    return Submission(command, around, _written(lines) + _private(settings) + _own(settings))


def _told(settings: Settings) -> dict[str, str]:
    """What a session of the host's own would be told, as far as it is not the cluster's to say."""
    spark = settings.spark
    told = of_a_session(spark_config(settings))
    if spark.deploy_mode == "cluster":
        told = {name: value for name, value in told.items() if name not in OF_THIS_MACHINE}
    if is_managed(spark.master):
        told |= {"spark.executor.instances": str(spark.host_cores), "spark.executor.cores": "1"}
    return told


def _for_driver(master: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Variables of a driver that the cluster runs; that it is ready is told by the file that the keeper named."""
    place = "spark.yarn.appMasterEnv" if master == "yarn" else "spark.kubernetes.driverEnv"
    ready = {READY_FILE: os.environ[READY_FILE]} if READY_FILE in os.environ else {}
    return {f"{place}.{name}": value for name, value in {**variables, **ready}.items()}


def _written(lines: Mapping[str, str]) -> str:
    return "".join(f"{name} {_escaped(value)}\n" for name, value in lines.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _private(settings: Settings) -> str:
    """The secret of a secured master, from the file that a session reads it from."""
    private = spark_config(settings).private
    return private.read_text("utf-8") if private else ""


def _own(settings: Settings) -> str:
    """Settings of one's own; the last word of a name holds."""
    if not settings.spark.properties:
        return ""
    file = settings.root / Path(settings.spark.properties).expanduser()
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise SettingsError(f"spark.properties names {file}, which cannot be read: {problem}") from None
