"""Language models on the far side of a network, by name. It knows names and answers, not what is asked of them."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from commonplace.errors import ProviderError, UsageError
from commonplace.models.client import JsonClient, Waiting
from commonplace.models.dialects import Anthropic, OpenAI
from commonplace.models.limits import Budget, Usage, limits_of
from commonplace.models.providers import Named, Place, access, named
from commonplace.settings.model import ModelSettings

if TYPE_CHECKING:
    from commonplace.models.contract import Generated, Generator, Message
    from commonplace.models.dialects import Dialect
    from commonplace.models.limits import Limits

_log = logging.getLogger(__name__)

_OURS: Final = frozenset({"model", "messages", "stream", "n", "system", "response_format", "tools", "tool_choice"})
"""Fields of a request that are not an option's to set."""
_REFUSED: Final = frozenset({400, 422})
_TOO_LONG: Final = re.compile(r"context.?(?:length|window|size)|too (?:long|large|many tokens)|maximum context", re.I)


def open_generator(
    name: str,
    *,
    base_url: str | None = None,
    sends_key: bool = True,
    settings: ModelSettings | None = None,
    environ: Mapping[str, str] | None = None,
    budget: Budget | None = None,
    limits: Limits | None = None,
    waiting: Waiting | None = None,
) -> Generator:
    """Return the language model of that name. Nothing is sent before it is asked.

    Args:
        name: `openai:<model>`, `anthropic:<model>`, `ollama:<model>` (or `local:`), with a slash in place of the colon
            if you like; without a provider it is OpenAI's.
        base_url: the address of a server that speaks like the provider's, in place of what settings, environment or
            provider name.
        sends_key: whether the environment's key goes to that server; False where a foreign file named the address.
        settings: None is the defaults.
        budget: what several models may spend together; None is one of its own, as the settings say.
        environ, limits, waiting: for tests; None is the process's own, the settings', real time.

    Raises:
        UsageError: the name, the address or the key is malformed.
        ProviderError: the provider needs a key and there is none.
    """
    found = named(name)
    place = Place(base_url or "", sends_key, settings, environ)
    chosen = settings or ModelSettings()
    client = JsonClient(
        access(found.provider, place),
        limits or limits_of(chosen),
        budget or Budget(chosen.max_calls, chosen.max_tokens),
        waiting,
    )
    return RemoteGenerator(found, client, Anthropic() if found.provider == "anthropic" else OpenAI())


@dataclass(frozen=True, slots=True)
class _Learned:
    """What a model turned out not to take. `form`: how many ways to ask for JSON were refused."""

    form: int = 0
    dropped: frozenset[str] = frozenset()
    renamed: Mapping[str, str] | None = None

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        names = self.renamed or {}
        found = {names.get(name, name): value for name, value in given.items()}
        return {name: value for name, value in found.items() if name not in self.dropped}


class RemoteGenerator:
    """A model behind an API. Safe for threads; what its server refused once it is not asked again."""

    def __init__(self, name: Named, client: JsonClient, dialect: Dialect) -> None:
        self._named = name
        self._client = client
        self._dialect = dialect
        self._learned = _Learned()

    def __repr__(self) -> str:
        return f"RemoteGenerator({self.name!r}, {self._client.access.address})"

    @property
    def name(self) -> str:
        """Provider and model, as `openai:gpt-4o-mini`."""
        return str(self._named)

    @property
    def usage(self) -> Usage:
        """What the budget of this model has spent so far."""
        return self._client.budget.usage

    def generate(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        total_s: float | None = None,
    ) -> Generated:
        """Return the model's answer to a conversation; where our key is in it, something else is.

        A server that refuses a schema is asked for plain JSON, and then in words; one that refuses an option is asked
        without it, and a warning is logged. `total_s` and the limits hold for all of that together.

        Raises:
            ProviderError: no answer, an empty one, or with a schema one that is cut short.
            UsageError: an option is not an option's to set, or there is no message.
        """
        given = _checked(messages, options)
        learned = self._learned
        deadline = self._client.deadline(total_s)
        while True:
            form = self._dialect.forms[learned.form]
            document = self._dialect.request(self._named.model, messages, schema, form, learned.options(given))
            try:
                reply = self._client.post(self._dialect.path, document, deadline=deadline)
            except ProviderError as error:
                eased = self._eased(learned, error, given, has_schema=schema is not None)
                if eased is None:
                    raise
                learned = eased
                continue
            self._learned = learned
            return self._read(self._client.scrubbed(reply), must_be_whole=schema is not None)

    def _read(self, reply: Mapping[str, Any], *, must_be_whole: bool) -> Generated:
        # An answer that is of no use is paid for too.
        self._client.budget.count_tokens(*self._dialect.spent(reply))
        try:
            return self._dialect.read(reply, must_be_whole=must_be_whole)
        except ProviderError as error:
            raise ProviderError(f"{self.name}: {error.args[0]}", status=200, remedy=error.remedy) from error

    def _eased(
        self, learned: _Learned, error: ProviderError, given: Mapping[str, Any], *, has_schema: bool
    ) -> _Learned | None:
        """Return what to ask for after a refusal; None where nothing is left to give up."""
        message = str(error)
        if error.status not in _REFUSED or _TOO_LONG.search(message):
            return None
        asked = learned.options(given)
        if "max_tokens" in asked and "max_completion_tokens" in message:
            return replace(learned, renamed={"max_tokens": "max_completion_tokens"})
        for name in asked:
            if re.search(rf"\b{re.escape(name)}\b", message):
                _log.warning("%s does not take %s, which is left out", self.name, name)
                return replace(learned, dropped=learned.dropped | {name})
        if has_schema and learned.form + 1 < len(self._dialect.forms):
            return replace(learned, form=learned.form + 1)
        return None


def _checked(messages: Sequence[Message], options: Mapping[str, Any] | None) -> dict[str, Any]:
    if not messages:
        raise UsageError("there is no message", remedy="ask something")
    given = {name: value for name, value in (options or {}).items() if value is not None}
    reserved = sorted(_OURS & set(given))
    if reserved:
        raise UsageError(f"{', '.join(reserved)} cannot be set as an option", remedy="leave it out")
    return given
