"""Dagster's home folder: its instance and its workspace, written from the settings."""

from pathlib import Path
from typing import Any

import yaml

from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK
from penstock.platform.settings.naming import variable_name

CODE_LOCATION = "penstock"
"""The code location's name, the same on the code server and in the workspace: runs find their code by it."""

CODE_LOCATION_MODULE = "penstock.platform.definitions.location"


def write_dagster_home(settings: Settings) -> Path:
    """Write dagster.yaml and workspace.yaml where they differ from the settings, and return the folder."""
    home = dagster_home(settings)
    home.mkdir(parents=True, exist_ok=True)
    _write_yaml(home / "dagster.yaml", dagster_config(settings))
    _write_yaml(workspace_file(settings), workspace_config(settings))
    return home


def dagster_home(settings: Settings) -> Path:
    """The folder that DAGSTER_HOME names."""
    return settings.home / "dagster"


def workspace_file(settings: Settings) -> Path:
    """The file that names the code server."""
    return dagster_home(settings) / "workspace.yaml"


def dagster_config(settings: Settings) -> dict[str, Any]:
    """What Dagster is told of itself."""
    keep_days = settings.dagster.keep_days
    config: dict[str, Any] = {
        "telemetry": {"enabled": False},
        "nux": {"enabled": False},
        "concurrency": {
            # Most runs only say what should become of a stream and wait: many may wait at once.
            "runs": {"max_concurrent_runs": 10},
            # Those that start a Spark of their own are in a pool, the only one that there is.
            "pools": {"default_limit": settings.dagster.spark_runs, "granularity": "run"},
        },
        "run_monitoring": {"enabled": True},
        "freshness": {"enabled": True},
        "retention": {
            "schedule": {"purge_after_days": keep_days},
            # A sensor that found nothing leaves a tick every few seconds: a day of these is plenty.
            "sensor": {"purge_after_days": {"skipped": 1, "failure": keep_days, "success": keep_days}},
        },
    }
    if settings.dagster.storage_url:
        # By name: the password stays out of the file.
        config["storage"] = {"postgres": {"postgres_url": {"env": variable_name("dagster.storage_url")}}}
    return config


def workspace_config(settings: Settings) -> dict[str, Any]:
    """Where the webserver and the daemon find the code."""
    grpc_server = {"host": LOOPBACK, "port": settings.dagster.code_port, "location_name": CODE_LOCATION}
    return {"load_from": [{"grpc_server": grpc_server}]}


def _write_yaml(path: Path, content: dict[str, Any]) -> None:
    text = yaml.safe_dump(content, sort_keys=False)
    if not path.is_file() or path.read_text("utf-8") != text:
        temporary = path.with_suffix(".new")
        temporary.write_text(text, "utf-8")
        temporary.replace(path)
