"""Where a user's own files lie: as platformdirs has it, mostly without asking it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import platformdirs
import pytest

from commonplace.settings.paths import day_of, is_page_name, page_name, user_settings_file, user_store


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


def test_only_pages_have_the_names_of_pages() -> None:
    """A conflict copy that was read as a page would bring the loser back."""
    assert page_name(date(2026, 11, 21)) == "2026-11-21.md"
    assert day_of("2026-11-21.md") == date(2026, 11, 21)
    assert is_page_name("2026-11-21.md")
    assert is_page_name("MEMORY.md")
    for name in ["2026-11-21.conflict-0a1b2c3d.md", "2026-02-30.md", "2026-11-21.md~", "README.md", "MEMORY.md.bak"]:
        assert not is_page_name(name)
