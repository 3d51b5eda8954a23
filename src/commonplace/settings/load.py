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
"""Names that are no settings, since no file may hold them, with the variable to set instead."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """Values that replace the settings in a store's own file.

    Attributes:
        values: by dotted key; they may set only what a project's own file may.
        origin: where they come from, for messages and for `settings show`.
    """

    values: Mapping[str, object]
    origin: str


@dataclass(frozen=True, slots=True)
class _Value:
    key: Key
    value: object
    origin: str


_Layer = dict[str, _Value]
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
        overrides: replace the store's own file; None reads that file.
        environment: None reads the process's own.
        start: the directory in which the search for a project begins; None is the working directory.
        user_file: None is the one in the user's configuration directory.

    Raises:
        SettingsError: a file is broken, a key is unknown, a value is refused, or a project sets what it may not.
        StoreError: the store that was found is a link, or contains one.
    """
    layer = _from_file(user_file or paths.user_settings_file())
    variables = os.environ if environment is None else environment
    variable_names = sorted(name for name in variables if name.startswith(PREFIX) and name not in RESERVED)
    by_variable, by_name = {key.environment: key for key in keys()}, {key.dotted: key for key in keys()}
    variable_items = ((name, variables[name], f"environment variable {name}") for name in variable_names)
    override_layer = _layer(variable_items, by_variable, "the environment", textual=True)
    flag_items = ((dotted, raw, "flag") for dotted, raw in (flags or {}).items() if raw is not None)
    override_layer |= _layer(flag_items, by_name, "the flags", textual=True)
    store_name, origin, project = _find_store((layer | override_layer).get("store.path"), start or Path.cwd())
    store = paths.directory_of(store_name)
    paths.refuse_links(store)
    if project is not None:
        layer |= _from_file(project / paths.PROJECT_FILE, trusted=False)
    if overrides is None:
        layer |= _from_store(store / paths.STORE_FILE)
    else:
        layer |= _from_document(overrides.values, overrides.origin, trusted=False)
    store_path = _Value(by_name["store.path"], store_name, origin)
    settings = _assemble(layer | override_layer | {"store.path": store_path}, project)
    size, overlap = settings.index.chunk_tokens, settings.index.chunk_overlap
    if overlap * 2 >= size:  # a chunk could make no progress
        origin = settings.origins.get("index.chunk_overlap") or settings.origins["index.chunk_tokens"]
        raise SettingsError(
            f"index.chunk_overlap is {overlap} with index.chunk_tokens {size} ({origin})",
            remedy=f"give it a whole number from 0 to {(size - 1) // 2}",
        )
    return settings


def flat(document: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield (dotted key, value) of a settings document; top-level keys that are not tables keep their bare names."""
    for section, content in document.items():
        if section == AGENTS and isinstance(content, Mapping):
            yield from flat({f"{AGENTS}.{agent}": strategy for agent, strategy in content.items()})
        elif isinstance(content, Mapping):
            yield from ((f"{section}.{name}", value) for name, value in content.items())
        else:
            yield section, content


def save_overrides(store: Path, overrides: Mapping[str, object]) -> None:
    """Write the store's own settings file, replacing what it held; without overrides, remove it."""
    target = store / paths.STORE_FILE
    if not overrides:
        target.unlink(missing_ok=True)
        return
    sections: dict[str, dict[str, object]] = {}
    for dotted, value in sorted(overrides.items()):
        section, _, name = dotted.rpartition(".")
        sections.setdefault(section, {})[name] = list(value) if isinstance(value, tuple) else value
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)  # left by a killed process with the same process id
    draft.write_text(json.dumps(sections, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(target)


def _find_store(setting: _Value | None, start: Path) -> tuple[str, str, Path | None]:
    """Return the store's path or address, the origin of that choice, and the project the store belongs to."""
    if setting is not None and setting.value:
        if address := paths.address_of(setting.value):
            return address, setting.origin, paths.find_project(start)
        scheme, separator, _ = str(setting.value).partition("://")
        if separator and scheme.isalnum():
            raise SettingsError(
                f"store.path begins with {scheme}:// ({setting.origin}), and no store has such an address",
                remedy=f"name a directory, or {paths.WRITE_ADDRESS}",
            )
        store = (start / Path(str(setting.value)).expanduser()).absolute()
        return str(store), setting.origin, paths.project_of(store)
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
    # The memory that tomllib needs grows with the square of a key's parts: a short file could take all of it.
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
    layer = _layer(items, {key.dotted: key for key in keys()}, origin)
    for item in () if trusted else layer.values():
        _check_project_may(item.key, item.value, origin)
    return layer


def _layer(
    items: Iterable[tuple[str, object, str]], by_name: Mapping[str, Key], source_name: str, *, textual: bool = False
) -> _Layer:
    """Parse the settings of one layer from (name as written there, value, origin)."""
    layer: _Layer = {}
    for name, raw, origin in items:
        key = by_name.get(name) or strategy_key(name)
        if key is None:
            raise _unknown(name, source_name, [*by_name, *SECTIONS])
        if key.dotted in layer:
            remedy = f"leave out {name} or the other"
            raise SettingsError(f"{source_name} sets {key.dotted} twice, in two spellings", remedy=remedy)
        layer[key.dotted] = _Value(key, parse(key, raw, origin, textual=textual and isinstance(raw, str)), origin)
    return layer


def _check_project_may(key: Key, value: object, path: str) -> None:
    is_outside = bool(key.rule.prefixes) and value not in key.rule.choices
    if not key.rule.project or is_outside:
        to = f" to {value!r}" if is_outside else ""
        raise SettingsError(
            f"{path} sets {key.dotted}{to}, which a project's own file may not",
            remedy=f"set it in {paths.user_settings_file()} or as {key.environment}",
        )
    texts = value if isinstance(value, tuple) else (value,)
    for path_or_glob in texts if key.rule.kind in ("globs", "path") else ():
        if not stays_inside(str(path_or_glob)):
            raise SettingsError(
                f"{path} sets {key.dotted} to {path_or_glob!r}, which lies outside the project",
                remedy="name something below the project's directory",
            )


def _unknown(name: str, source_name: str, names: list[str]) -> SettingsError:
    import difflib

    if name in _SECRET:
        return SettingsError(f"{name} is set in {source_name}", remedy=f"remove it there, and set {_SECRET[name]}")
    suggestions = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    remedy = f"did you mean {suggestions[0]}?" if suggestions else "`commonplace settings show` lists the settings"
    return SettingsError(f"{name} in {source_name} is not a setting", remedy=remedy)


def _assemble(layer: Mapping[str, _Value], project: Path | None) -> Settings:
    sections: dict[str, dict[str, object]] = {section: {} for section in SECTIONS}
    for item in layer.values():
        sections.setdefault(item.key.section, {})[item.key.name] = item.value
    built: dict[str, Any] = {section: kind(**sections.pop(section)) for section, kind in SECTIONS.items()}
    agents = strategies({section.removeprefix(f"{AGENTS}."): options for section, options in sections.items()})
    origins = {item.key.dotted: item.origin for item in layer.values()}
    return Settings(**built, agents=agents, origins=origins, project=project)
