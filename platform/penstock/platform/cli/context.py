"""What commands share: the settings, with what is odd about them said once, and the control store."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from penstock.platform.settings import Loaded, Settings, load_settings

if TYPE_CHECKING:
    from penstock.platform.control import ControlStore


def loaded_settings() -> Loaded:
    """The settings; variables that look like settings and are none are told on stderr."""
    loaded = load_settings()
    for sentence in loaded.unknown:
        click.secho(f"penstock: {sentence}", fg="yellow", err=True)
    return loaded


def current_settings() -> Settings:
    """The settings' values."""
    return loaded_settings().settings


@contextmanager
def control_store(settings: Settings) -> "Iterator[ControlStore]":
    """The control store, opened for one command."""
    from penstock.platform.control import open_control

    store = open_control(settings.control_url, settings.control_secret)
    try:
        yield store
    finally:
        store.close()
