"""Settings: read once at start and passed on as a value."""

from commonplace.settings.agents import ContextSettings, Strategy, agent_name
from commonplace.settings.keys import Key, Rule
from commonplace.settings.load import Overrides, load, save_overrides
from commonplace.settings.paths import find_project, user_settings_file
from commonplace.settings.schema import (
    EmbedderSettings,
    IndexSettings,
    LogSettings,
    ModelSettings,
    SearchSettings,
    Settings,
    StoreSettings,
    keys,
)

__all__ = [
    "ContextSettings",
    "EmbedderSettings",
    "IndexSettings",
    "Key",
    "LogSettings",
    "ModelSettings",
    "Overrides",
    "Rule",
    "SearchSettings",
    "Settings",
    "StoreSettings",
    "Strategy",
    "agent_name",
    "find_project",
    "keys",
    "load",
    "save_overrides",
    "user_settings_file",
]
