"""Load settings from all layers into one value.

Later layers override earlier ones: defaults, the user's file, the project's file, the file that `index build --config`
left in the store, environment variables, flags.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from commonplace.dataclasses import dataclass
from commonplace.errors import SettingsError, StoreError
from commonplace.files import read_file, stays_inside
from commonplace.settings import paths
from commonplace.settings.agents import SECTION as AGENTS
from commonplace.settings.agents import strategies, strategy_key
from commonplace.settings.keys import Key, parse
from commonplace.settings.schema import SECTIONS, Settings, keys

PREFIX = "COMMONPLACE_"
_MAX_BYTES = 1024 * 1024
_MAX_TOML_BYTES = 128 * 1024
_MAX_KEY_DOTS = 100
RESERVED = frozenset({"COMMONPLACE_DATA", "COMMONPLACE_GRAPH_PASSWORD"})
"""Variables with our prefix that are not settings: where the tests and benchmarks find their data, and a password."""
_SECRET = {"graph.graph_password": "COMMONPLACE_GRAPH_PASSWORD"}
"""What is no setting since no file may hold it, and the variable to set instead."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """What to take in place of the settings that a store keeps.

    Attributes:
        values: by dotted key, held to what a project's own file may set.
        origin: where they come from, for messages and for `settings show`.
    """

    values: Mapping[str, object]
    origin: str


@dataclass(frozen=True, slots=True)
class _Given:
    key: Key
    value: object
    origin: str


_Layer = dict[str, _Given]
"""By dotted key."""


def load(
    flags: Mapping[str, object] | None = None,
    *,
    overrides: Overrides | None = None,
    environment: Mapping[str, str] | None = None,
    start: Path | None = None,
    user_file: Path | None = None,
) -> Settings:
    """Return the settings of this run; `store.path` in them is always the store's absolute path.

    Args:
        flags: by dotted key; None values count as not given.
        overrides: taken in place of what the store's own file says; None reads that file.
        environment: None reads the process's own.
        start: the directory in which the search for a project begins; None is the working directory.
        user_file: None is the one in the user's configuration directory.

    Raises:
        SettingsError: a file is broken, a key is unknown, a value is refused, or a project sets what it may not.
        StoreError: the store that was found is a link, or it holds one.
    """
    given = _from_file(user_file or paths.user_settings_file())
    variables = os.environ if environment is None else environment
    ours = sorted(name for name in variables if name.startswith(PREFIX) and name not in RESERVED)
    by_variable, by_name = {key.environment: key for key in keys()}, {key.dotted: key for key in keys()}
    set_there = ((name, variables[name], f"environment variable {name}") for name in ours)
    outer = _layer(set_there, by_variable, "the environment", textual=True)
    asked = ((dotted, raw, "flag") for dotted, raw in (flags or {}).items() if raw is not None)
    outer |= _layer(asked, by_name, "the flags", textual=True)
    named, origin, project = _place((given | outer).get("store.path"), start or Path.cwd())
    store = paths.directory_of(named)
    paths.refuse_links(store)
    if project is not None:
        given |= _from_file(project / paths.PROJECT_FILE, trusted=False)
    if overrides is None:
        given |= _from_store(store / paths.STORE_FILE)
    else:
        given |= _from_document(overrides.values, overrides.origin, trusted=False)
    place = _Given(by_name["store.path"], named, origin)
    settings = _assemble(given | outer | {"store.path": place}, project)
    size, overlap = settings.index.chunk_tokens, settings.index.chunk_overlap
    if overlap * 2 >= size:  # a chunk could make no progress
        origin = settings.origins.get("index.chunk_overlap") or settings.origins["index.chunk_tokens"]
        raise SettingsError(
            f"index.chunk_overlap is {overlap} with index.chunk_tokens {size} ({origin})",
            remedy=f"give it a whole number from 0 to {(size - 1) // 2}",
        )
    return settings


def flat(document: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield (dotted key, value) of a settings document; top-level keys that are no tables keep their bare names."""
    for section, content in document.items():
        if section == AGENTS and isinstance(content, Mapping):
            yield from flat({f"{AGENTS}.{agent}": strategy for agent, strategy in content.items()})
        elif isinstance(content, Mapping):
            yield from ((f"{section}.{name}", value) for name, value in content.items())
        else:
            yield section, content


def save_overrides(store: Path, overrides: Mapping[str, object]) -> None:
    """Write settings into the store's own settings file, in place of those that were there; none removes the file."""
    target = store / paths.STORE_FILE
    if not overrides:
        target.unlink(missing_ok=True)
        return
    sections: dict[str, dict[str, object]] = {}
    for dotted, value in sorted(overrides.items()):
        section, _, name = dotted.rpartition(".")
        sections.setdefault(section, {})[name] = list(value) if isinstance(value, tuple) else value
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)  # of a process that was killed, and had the same number
    fresh.write_text(json.dumps(sections, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    fresh.replace(target)


def _place(chosen: _Given | None, start: Path) -> tuple[str, str, Path | None]:
    """Return the store's path or address, why it is that one, and the project it belongs to."""
    if chosen is not None and chosen.value:
        if address := paths.address_of(chosen.value):
            return address, chosen.origin, paths.find_project(start)
        scheme, separator, _ = str(chosen.value).partition("://")
        if separator and scheme.isalnum():
            raise SettingsError(
                f"store.path begins with {scheme}:// ({chosen.origin}), and no store has such an address",
                remedy=f"name a directory, or {paths.WRITE_ADDRESS}",
            )
        store = (start / Path(str(chosen.value)).expanduser()).absolute()
        return str(store), chosen.origin, paths.project_of(store)
    if (project := paths.find_project(start)) is not None:
        store = project / paths.STORE_NAME
        if store.is_symlink():
            raise StoreError(
                f"{store} is a link, which may have come with a clone and is not followed",
                remedy="delete it, or name the store that it leads to with --store",
            )
        return str(store), f"found from {start}", project
    return str(paths.user_store()), "default", None


def _from_file(path: Path, *, trusted: bool = True) -> _Layer:
    try:
        data = read_file(path, _MAX_TOML_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        remedy = "put a settings file that can be read in its place"
        raise SettingsError(f"{path} cannot be read: {error.strerror}", remedy=remedy) from error
    # Loaded here, since most users have no such file.
    import tomllib

    too_deep = SettingsError(f"{path} is not valid TOML: nested too deeply", remedy="no setting nests")
    # What tomllib needs grows with the square of a key's parts: a short file could take all memory.
    if any(line.partition(b"=")[0].count(b".") > _MAX_KEY_DOTS for line in data.split(b"\n")):
        raise too_deep
    try:
        document = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}", remedy="correct that line") from error
    except RecursionError as error:
        raise too_deep from error
    return _from_document(document, str(path), trusted=trusted)


def _from_store(path: Path) -> _Layer:
    try:
        document = json.loads(read_file(path, _MAX_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"{path} cannot be read: {error}", remedy="delete it and build the index again") from error
    if not isinstance(document, dict):
        raise SettingsError(f"{path} holds no settings", remedy="delete it and build the index again")
    return _from_document(document, str(path), trusted=False)


def _from_document(document: Mapping[str, Any], origin: str, *, trusted: bool) -> _Layer:
    items = ((dotted, raw, origin) for dotted, raw in flat(document))
    given = _layer(items, {key.dotted: key for key in keys()}, origin)
    for item in () if trusted else given.values():
        _check_project_may(item.key, item.value, origin)
    return given


def _layer(
    items: Iterable[tuple[str, object, str]], named: Mapping[str, Key], place: str, *, textual: bool = False
) -> _Layer:
    """Parse the settings of one layer from names as they are written there, values and origins."""
    given: _Layer = {}
    for written, raw, origin in items:
        key = named.get(written) or strategy_key(written)
        if key is None:
            raise _unknown(written, place, [*named, *SECTIONS])
        if key.dotted in given:
            remedy = f"leave out {written} or the other"
            raise SettingsError(f"{place} sets {key.dotted} twice, in two spellings", remedy=remedy)
        given[key.dotted] = _Given(key, parse(key, raw, origin, textual=textual and isinstance(raw, str)), origin)
    return given


def _check_project_may(key: Key, value: object, path: str) -> None:
    is_outside = bool(key.rule.prefixes) and value not in key.rule.choices
    if not key.rule.project or is_outside:
        to = f" to {value!r}" if is_outside else ""
        raise SettingsError(
            f"{path} sets {key.dotted}{to}, which a project's own file may not",
            remedy=f"set it in {paths.user_settings_file()} or as {key.environment}",
        )
    written = value if isinstance(value, tuple) else (value,)
    for path_or_glob in written if key.rule.kind in ("globs", "path") else ():
        if not stays_inside(str(path_or_glob)):
            raise SettingsError(
                f"{path} sets {key.dotted} to {path_or_glob!r}, which lies outside the project",
                remedy="name something below the project's directory",
            )


def _unknown(name: str, place: str, known: list[str]) -> SettingsError:
    import difflib

    if name in _SECRET:
        return SettingsError(f"{name} is set in {place}", remedy=f"remove it there, and set {_SECRET[name]}")
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    remedy = f"did you mean {close[0]}?" if close else "`commonplace settings show` lists the settings"
    return SettingsError(f"{name} in {place} is not a setting", remedy=remedy)


def _assemble(given: Mapping[str, _Given], project: Path | None) -> Settings:
    sections: dict[str, dict[str, object]] = {section: {} for section in SECTIONS}
    for item in given.values():
        sections.setdefault(item.key.section, {})[item.key.name] = item.value
    built: dict[str, Any] = {section: kind(**sections.pop(section)) for section, kind in SECTIONS.items()}
    agents = strategies({section.removeprefix(f"{AGENTS}."): options for section, options in sections.items()})
    origins = {item.key.dotted: item.origin for item in given.values()}
    return Settings(**built, agents=agents, origins=origins, project=project)
