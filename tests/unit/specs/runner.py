"""Specs for the tests, built from a few words, and models that answer from a list."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commonplace.models.llm import ScriptedGenerator
from commonplace.settings import Settings
from commonplace.specs import run

ROOT = Path(__file__).resolve().parents[3]
RETRIEVER = ROOT / "examples/memory-retriever.oas.yaml"

SEOUL = {"role": "user", "content": "I have lived in Seoul since 2019."}
NOTED = {"role": "assistant", "content": "Noted."}
REX = {"role": "user", "content": "My dog is called Rex."}
BILLING = {"role": "user", "content": "We chose Postgres for billing."}
CANDIDATES = [SEOUL, NOTED, REX, BILLING]


def spec(tasks: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a spec of these tasks; each gets a description, unless it has one."""
    return {
        "open_agent_spec": "1.5.0",
        "agent": {"name": "sample", "description": "a sample"},
        "intelligence": {"type": "llm", "engine": "openai", "model": "gpt-4o"},
        "tasks": {name: {"description": name, **task} for name, task in tasks.items()},
        **more,
    }


def fields(*required: str, **properties: str) -> dict[str, Any]:
    """Return the schema of an object: properties by their types, and which are required."""
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(required),
    }


def asked(
    document: Mapping[str, Any] | Path | str,
    task: str | None = None,
    values: Mapping[str, Any] | None = None,
    *replies: Any,
    **more: Any,
) -> dict[str, Any]:
    """Run a task with a model that gives these replies; what is not text is given as JSON."""
    texts = [reply if isinstance(reply, str | Exception) else json.dumps(reply) for reply in replies]
    settings = more.pop("settings", Settings())
    generator = more.pop("generator", ScriptedGenerator(texts))
    return run(document, task, values or {}, generator, settings, environ={}, **more)


def written(place: Path, name: str, document: Mapping[str, Any]) -> Path:
    """Write a spec to a file; JSON is YAML."""
    file = place / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document), encoding="utf-8")
    return file
