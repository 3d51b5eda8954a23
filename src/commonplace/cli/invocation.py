"""What every command shares: the options of all commands. It does not know what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from commonplace.cli.running import Invocation
from commonplace.cli.values import filled
from commonplace.errors import UsageError

__all__ = ["Command", "Group", "Invocation", "invocation_of", "pass_invocation", "shared_options"]


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


def _shown(parameter: click.Parameter, context: click.Context) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.make_metavar(context).strip("[].")


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
            help="Tell on standard error what is done, and show the traceback of an error.",
        ),
    ]


class Command(click.Command):
    """A command that also takes the shared options.

    Args:
        makes_store: it makes a store in a directory that `--store` names and that has none.
    """

    def __init__(self, *args: Any, makes_store: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_options()]
        self._makes_store = makes_store

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error names its options, not the parameters of the library that they are passed as."""
        invocation_of(ctx).makes_store = self._makes_store
        try:
            return super().invoke(ctx)
        except UsageError as error:
            error.rename({each.name: _shown(each, ctx) for each in self.params if each.name})
            raise


class Group(click.Group):
    """A group that also takes the shared options, as do its commands."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_options()]
