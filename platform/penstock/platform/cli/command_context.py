"""Settings and control store for commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from penstock.core.file_access import set_file_access
from penstock.platform.settings import LoadedSettings, Settings, load_settings

if TYPE_CHECKING:
    from penstock.platform.control import ControlStore


def load_current_settings() -> LoadedSettings:
    """Load the settings; print a warning to stderr for each variable that looks like a setting but is unknown."""
    loaded = load_settings()
    set_file_access(loaded.settings.file_access)
    for warning in loaded.unknown_warnings:
        click.secho(f"penstock: {warning}", fg="yellow", err=True)
    return loaded


def current_settings() -> Settings:
    """Load the settings and return their values."""
    return load_current_settings().settings


@contextmanager
def use_control_store(settings: Settings) -> "Iterator[ControlStore]":
    """Open the control store for the duration of a command."""
    from penstock.platform.control import open_control_store

    store = open_control_store(settings.control_url, settings.control_secret)
    try:
        yield store
    finally:
        store.close()
