"""The platform's settings: one typed object, and where each of its values came from.

Only this package reads the environment and `penstock.toml`. Everything else is handed what it needs.
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
