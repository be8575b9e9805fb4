"""The platform's settings: one typed object, and the source of each value.

Only this package reads the environment and `penstock.toml`. All other code receives its settings as arguments.
"""

from penstock.platform.settings.loader import (
    LoadedSettings,
    SettingOrigin,
    check_settings,
    find_root,
    load_settings,
)
from penstock.platform.settings.model import Settings

__all__ = ["LoadedSettings", "SettingOrigin", "Settings", "check_settings", "find_root", "load_settings"]
