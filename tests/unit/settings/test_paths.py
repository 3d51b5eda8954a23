"""Where a user's own files lie: as platformdirs has it, mostly without asking it."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from commonplace.settings.paths import user_settings_file, user_store


@pytest.mark.parametrize("home", ["/home/ada", "relative", None])
@pytest.mark.parametrize("named", ["/elsewhere", "/with/slash/", "relative", " ", "", "~/x", None])
def test_the_users_directories_are_those_of_platformdirs(
    monkeypatch: pytest.MonkeyPatch, named: str | None, home: str | None
) -> None:
    """Another answer on some machine would lose the user's store."""
    for variable, value in (("XDG_CONFIG_HOME", named), ("XDG_DATA_HOME", named), ("HOME", home)):
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)
    assert user_settings_file() == Path(platformdirs.user_config_dir("commonplace", appauthor=False)) / "settings.toml"
    assert user_store() == Path(platformdirs.user_data_dir("commonplace", appauthor=False)) / "store"
