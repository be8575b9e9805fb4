"""Dagster's home folder: its instance and its workspace, written from the settings."""

from pathlib import Path
from typing import Any

import yaml

from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK
from penstock.platform.settings.names import variable

LOCATION = "penstock"
"""The code location's name, the same on the code server and in the workspace: runs find their code by it."""

MODULE = "penstock.platform.definitions.location"


def write_dagster_home(settings: Settings) -> Path:
    """Write dagster.yaml and workspace.yaml where they differ from the settings, and return the folder."""
    home = dagster_home(settings)
    home.mkdir(parents=True, exist_ok=True)
    _write(home / "dagster.yaml", instance(settings))
    _write(workspace_file(settings), workspace(settings))
    return home


def dagster_home(settings: Settings) -> Path:
    """The folder that DAGSTER_HOME names."""
    return settings.home / "dagster"


def workspace_file(settings: Settings) -> Path:
    """The file that names the code server."""
    return dagster_home(settings) / "workspace.yaml"


def instance(settings: Settings) -> dict[str, Any]:
    """What Dagster is told of itself."""
    days = settings.dagster.keep_days
    found: dict[str, Any] = {
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
            "schedule": {"purge_after_days": days},
            # A sensor that found nothing leaves a tick every few seconds: a day of these is plenty.
            "sensor": {"purge_after_days": {"skipped": 1, "failure": days, "success": days}},
        },
    }
    if settings.dagster.storage_url:
        # By name: the password stays out of the file.
        found["storage"] = {"postgres": {"postgres_url": {"env": variable("dagster.storage_url")}}}
    return found


def workspace(settings: Settings) -> dict[str, Any]:
    """Where the webserver and the daemon find the code."""
    server = {"host": LOOPBACK, "port": settings.dagster.code_port, "location_name": LOCATION}
    return {"load_from": [{"grpc_server": server}]}


def _write(path: Path, content: dict[str, Any]) -> None:
    text = yaml.safe_dump(content, sort_keys=False)
    if not path.is_file() or path.read_text("utf-8") != text:
        written = path.with_suffix(".new")
        written.write_text(text, "utf-8")
        written.replace(path)
