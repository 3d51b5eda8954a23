"""What every command shares: the options of all commands, the settings they lead to, and the engine they open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.values import filled

if TYPE_CHECKING:
    import logging

    from commonplace.engine import Engine
    from commonplace.settings import Overrides, Settings
    from commonplace.types import Progress


@dataclass(slots=True)
class Invocation:
    """One run of the program, filled while its arguments are parsed."""

    store: str | None = None
    namespace: str | None = None
    as_json: bool = False
    is_verbose: bool = False
    log_handlers: list[logging.Handler] = field(default_factory=list)

    def settings(self, overrides: Overrides | None = None, **flags: object) -> Settings:
        """Load the settings with this run's flags; `search_limit=5` stands for `search.limit`.

        Args:
            overrides: what to take in place of the settings that the store keeps.
        """
        from commonplace.settings import load

        dotted = {name.replace("_", ".", 1): value for name, value in flags.items()}
        return load({"store.path": self.store, "store.namespace": self.namespace, **dotted}, overrides=overrides)

    def open(
        self, settings: Settings, *, create: bool = False, progress: Progress | None = None, stays_small: bool = False
    ) -> Engine:
        """Open the engine of the store that the settings name.

        Args:
            stays_small: it is a server's, that leaves heavy work to processes of their own.

        Raises:
            StoreMissingError: there is no store and `create` is False; a question to nothing deserves an error.
        """
        from commonplace import logs
        from commonplace.cli.noticing import Notices
        from commonplace.engine.layout import LOGS
        from commonplace.engine.opening import open_engine
        from commonplace.errors import StoreMissingError

        directory = Path(settings.store.path)
        if not create and not self.has_store(settings):
            raise StoreMissingError(
                f"there is no store at {directory}",
                remedy="create one with `commonplace init` and fill it with `commonplace index build`",
            )
        engine = open_engine(
            directory, settings.store.namespace, None, settings=settings, progress=progress, stays_small=stays_small
        )
        rotation = logs.Rotation(settings.log.max_bytes, settings.log.keep)
        self.log_handlers.append(logs.attach(directory / LOGS, level=settings.log.level, rotation=rotation))
        self.log_handlers.append(logs.attached(Notices(self)))
        return engine

    def has_store(self, settings: Settings) -> bool:
        """Return whether there is a store where the settings name one."""
        from commonplace.engine.layout import DATABASE

        return (Path(settings.store.path) / DATABASE).is_file()

    def close(self) -> None:
        """Take the log handlers off again."""
        if self.log_handlers:
            from commonplace import logs

            while self.log_handlers:
                logs.detach(self.log_handlers.pop())


def _remember(attribute: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if isinstance(value, str):
            filled(context, parameter, value)
        if value:
            setattr(invocation_of(context), attribute, value)

    return callback


def invocation_of(context: click.Context) -> Invocation:
    """Return the one invocation that a context and all its parents share."""
    root = context.find_root()
    if not isinstance(root.obj, Invocation):
        root.obj = Invocation()
    return root.obj


pass_invocation = click.make_pass_decorator(Invocation)


def shared_options() -> list[click.Parameter]:
    """Return the options that every command takes, before or after its name; the later one wins."""
    return [
        click.Option(
            ["--store"],
            metavar="DIRECTORY",
            expose_value=False,
            callback=_remember("store"),
            help="Use this store instead of the one found upward from here.",
        ),
        click.Option(
            ["--namespace"],
            metavar="NAME",
            expose_value=False,
            callback=_remember("namespace"),
            help="Use this namespace of the store.",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_remember("as_json"),
            help="Print one JSON value instead of text.",
        ),
        click.Option(
            ["--verbose", "-v"],
            is_flag=True,
            expose_value=False,
            callback=_remember("is_verbose"),
            help="Show the traceback of an error.",
        ),
    ]


class Command(click.Command):
    """A command that also takes the shared options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_options()]


class Group(click.Group):
    """A group that also takes the shared options, as do its commands."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_options()]
