"""Settings: read once at start and passed on as a value."""

from commonplace.settings.load import Overrides, load, save_overrides
from commonplace.settings.schema import ModelSettings, Settings, keys

__all__ = ["ModelSettings", "Overrides", "Settings", "keys", "load", "save_overrides"]
