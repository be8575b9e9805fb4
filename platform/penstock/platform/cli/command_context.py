"""What commands share: the settings, with what is odd about them said once, and the control store."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from penstock.platform.settings import LoadedSettings, Settings, load_settings

if TYPE_CHECKING:
    from penstock.platform.control import ControlStore


def load_current_settings() -> LoadedSettings:
    """The settings; variables that look like settings and are none are told on stderr."""
    loaded = load_settings()
    for warning in loaded.unknown_warnings:
        click.secho(f"penstock: {warning}", fg="yellow", err=True)
    return loaded


def current_settings() -> Settings:
    """The settings' values."""
    return load_current_settings().settings


@contextmanager
def use_control_store(settings: Settings) -> "Iterator[ControlStore]":
    """The control store, opened for one command."""
    from penstock.platform.control import open_control_store

    store = open_control_store(settings.control_url, settings.control_secret)
    try:
        yield store
    finally:
        store.close()
