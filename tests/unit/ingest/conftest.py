"""A project on disk, and which of its files are opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.ingest.projects import Project

from commonplace.ingest import artifacts
from commonplace.ingest.read import Refusal, read_bytes
from commonplace.types import FileStamp


@pytest.fixture
def project(tmp_path: Path) -> Project:
    directory = tmp_path / "project"
    directory.mkdir()
    return Project(directory)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are opened, in order."""
    opened: list[str] = []

    def reading(location: str, limit: int) -> tuple[bytes, FileStamp] | Refusal:
        opened.append(Path(location).name)
        return read_bytes(location, limit)

    monkeypatch.setattr(artifacts, "read_bytes", reading)
    return opened
