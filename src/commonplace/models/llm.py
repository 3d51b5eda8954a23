"""Generators: remote language models (OpenAI, Anthropic and compatible) and a scripted one for tests.

Most servers implement OpenAI's chat completions; Anthropic's messages have a format of their own. Written after the
references of the providers: https://platform.openai.com/docs/api-reference/chat and
https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import ProviderError, UsageError
from commonplace.formats.json_values import DECODER
from commonplace.models.client import Budget, JsonClient, Waiting
from commonplace.models.contract import Generated, Generator, Message
from commonplace.models.providers import Named, access, named
from commonplace.settings.schema import ModelSettings

_log = logging.getLogger(__name__)
Schema = Mapping[str, Any]

_MAX_TOKENS: Final = 4096
"""What an answer of Anthropic may have where nothing is said: their API demands a number."""
_ANTHROPIC_NAMES: Final = {"max_completion_tokens": "max_tokens", "stop": "stop_sequences"}
_OURS: Final = frozenset({"model", "messages", "stream", "n", "system", "response_format", "tools", "tool_choice"})
"""Fields of a request that are not an option's to set."""
_IN_WORDS: Final = "Answer with one JSON value that fulfils this JSON schema, and with nothing else: "
_REFUSED: Final = frozenset({400, 422})
_TOO_LONG: Final = re.compile(r"context.?(?:length|window|size)|too (?:long|large|many tokens)|maximum context", re.I)


@dataclass(frozen=True, slots=True)
class Read:
    """What an answer says.

    Attributes:
        spent: the tokens that it cost, sent and received, 0 if the server does not say.
        reason: why it ended.
        refusal: why the model refused, "" if it did not.
    """

    text: str
    spent: tuple[int, int]
    reason: object
    is_cut: bool
    refusal: str = ""


class OpenAI:
    """Chat completions: OpenAI, Ollama, vLLM, LM Studio, llama.cpp and most gateways."""

    path = "/chat/completions"

    def request(
        self, model: str, messages: Sequence[Message], schema: Schema | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the document that asks for an answer."""
        said = [{"role": each.role, "content": each.content} for each in messages]
        document: dict[str, Any] = {"model": model, "messages": said, **options}
        if schema is not None:
            asked = {"name": "answer", "schema": dict(schema), "strict": is_strict(schema)}
            document["response_format"] = {"type": "json_schema", "json_schema": asked}
        return document

    def read(self, document: Mapping[str, Any]) -> Read:
        choices = document.get("choices")
        choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
        message, usage = _mapping(choice.get("message")), _mapping(document.get("usage"))
        refusal, reason = message.get("refusal"), choice.get("finish_reason")
        spent = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        refused = refusal if isinstance(refusal, str) else ""
        return Read(_text(message.get("content")), spent, reason, reason == "length", refused)


class Anthropic:
    """Anthropic's messages; see `OpenAI` for what its methods are."""

    path = "/messages"

    def request(
        self, model: str, messages: Sequence[Message], schema: Schema | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        said = [{"role": each.role, "content": each.content} for each in messages if each.role != "system"]
        named = {_ANTHROPIC_NAMES.get(name, name): value for name, value in options.items()}
        if isinstance(named.get("stop_sequences"), str):
            named["stop_sequences"] = [named["stop_sequences"]]
        document: dict[str, Any] = {"model": model, "max_tokens": _MAX_TOKENS, "messages": said, **named}
        if system := [each.content for each in messages if each.role == "system" and each.content]:
            document["system"] = "\n\n".join(system)
        if schema is not None:
            document["output_config"] = {"format": {"type": "json_schema", "schema": dict(schema)}}
        return document

    def read(self, document: Mapping[str, Any]) -> Read:
        usage, reason = _mapping(document.get("usage")), document.get("stop_reason")
        spent = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
        is_cut = reason in ("max_tokens", "model_context_window_exceeded")
        refused = "for its own reasons" if reason == "refusal" else ""
        return Read(_text(document.get("content")), spent, reason, is_cut, refused)


def is_strict(schema: object) -> bool:
    """Return whether OpenAI's strict mode takes a schema: objects closed, all their properties required."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        names = list(_mapping(schema.get("properties")))
        if schema.get("additionalProperties") is not False or sorted(schema.get("required", ())) != sorted(names):
            return False
    return all(map(is_strict, schema.values()))


def _text(content: object) -> str:
    """Return the text of a content: a string, or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = [_mapping(block) for block in content] if isinstance(content, list) else []
    return "".join(block["text"] for block in blocks if isinstance(block.get("text"), str))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def open_generator(
    name: str,
    *,
    base_url: str = "",
    sends_key: bool = True,
    settings: ModelSettings | None = None,
    environ: Mapping[str, str] | None = None,
    budget: Budget | None = None,
    waiting: Waiting | None = None,
) -> Generator:
    """Return the language model of that name. Nothing is sent before it is asked.

    Args:
        name: as `providers.named` reads it.
        base_url, sends_key: as in `providers.access`.
        budget: what several models may spend together; None is one of its own, as the settings say.
        environ, waiting: for tests; None is the process's own, real time.

    Raises:
        UsageError: the name, the address or the key is malformed.
        ProviderError: the provider needs a key and there is none.
    """
    found = named(name)
    reached = access(found.provider, base_url=base_url, sends_key=sends_key, settings=settings, environ=environ)
    client = JsonClient(reached, settings, budget, waiting)
    return RemoteGenerator(found, client, Anthropic() if found.provider == "anthropic" else OpenAI())


@dataclass(frozen=True, slots=True)
class _Learned:
    """What a model turned out to take: a schema in words alone, fewer options, `max_tokens` by its newer name."""

    in_words: bool = False
    dropped: frozenset[str] = frozenset()
    is_renamed: bool = False

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        taken = {name: value for name, value in given.items() if name not in self.dropped}
        if self.is_renamed and "max_tokens" in taken:
            taken["max_completion_tokens"] = taken.pop("max_tokens")
        return {name: value for name, value in taken.items() if name not in self.dropped}


class RemoteGenerator:
    """A model behind an API. Safe for threads; what its server refused once it is not asked again."""

    def __init__(self, name: Named, client: JsonClient, dialect: OpenAI | Anthropic) -> None:
        self._model = name.model
        self.name = str(name)
        self._client = client
        self._dialect = dialect
        self._learned = _Learned()

    def generate(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        total_s: float | None = None,
    ) -> Generated:
        """Return the model's answer to a conversation, our key replaced if the answer contains it.

        A server that refuses a schema is asked in words; one that refuses an option is asked without it, and a warning
        is logged. `total_s` and the settings hold for all of that together.

        Raises:
            ProviderError: no answer, an empty one, or with a schema one that is cut short.
            UsageError: an option is not an option's to set, or there is no message.
        """
        if not messages:
            raise UsageError("there is no message", remedy="ask something")
        given = {name: value for name, value in (options or {}).items() if value is not None}
        if reserved := sorted(_OURS & set(given)):
            raise UsageError(f"{', '.join(reserved)} cannot be set as an option", remedy="leave it out")
        learned, deadline = self._learned, self._client.deadline(total_s)
        while True:
            taken, asked, form = learned.options(given), messages, schema
            if schema is not None and learned.in_words:
                system = [each.content for each in messages[:1] if each.role == "system"]  # many servers take only one
                text = "\n\n".join([*system, f"{_IN_WORDS}{json.dumps(schema, ensure_ascii=False)}"])
                asked, form = [Message("system", text), *messages[len(system) :]], None
            document = self._dialect.request(self._model, asked, form, taken)
            try:
                reply = self._client.post(self._dialect.path, document, deadline=deadline)
            except ProviderError as error:
                eased = self._eased(learned, error, taken, has_schema=schema is not None)
                if eased is None:
                    raise
                learned = eased
                continue
            self._learned = learned
            return self._read(self._client.scrubbed(reply), must_be_whole=schema is not None)

    def _eased(
        self, learned: _Learned, error: ProviderError, taken: Mapping[str, Any], *, has_schema: bool
    ) -> _Learned | None:
        """Return what to ask for after a refusal; None if nothing is left to give up."""
        message = str(error)
        if error.status not in _REFUSED or _TOO_LONG.search(message):
            return None
        if "max_tokens" in taken and "max_completion_tokens" in message:
            return replace(learned, is_renamed=True)
        for name in taken:
            if re.search(rf"\b{re.escape(name)}\b", message):
                _log.warning("%s does not take %s, which is left out", self.name, name)
                return replace(learned, dropped=learned.dropped | {name})
        return replace(learned, in_words=True) if has_schema and not learned.in_words else None

    def _read(self, reply: Mapping[str, Any], *, must_be_whole: bool) -> Generated:
        found = self._dialect.read(reply)
        # An answer that is of no use is paid for too.
        self._client.budget.count_tokens(sum(found.spent))
        if found.refusal:
            raise self._useless(f"the model refused to answer: {found.refusal[:200]}", "change what is asked")
        if must_be_whole and found.is_cut:
            raise self._useless("the model's answer is cut short", "give it a larger max_tokens, or ask for less")
        if not found.text.strip():
            why = f", it stopped for {found.reason!r}" if isinstance(found.reason, str) else ""
            raise self._useless(f"the model's answer is empty{why}", "try again, or choose another model")
        model = reply.get("model")
        return Generated(found.text, model if isinstance(model, str) else "", *found.spent)

    def _useless(self, what: str, remedy: str) -> ProviderError:
        return ProviderError(f"{self.name}: {what}", status=200, remedy=remedy)


_FENCE: Final = re.compile(r"(?s)```[ \t]*[\w+-]*[ \t]*\r?\n?(.*?)(?:```|\Z)")
_START: Final = re.compile(r"[\[{]")
_MAX_STARTS: Final = 1_000
_MAX_READINGS: Final = 20
"""Maximum number of brackets tried as the beginning of a value, and of characters read in all, as a multiple of the
answer's length, so that no answer costs quadratic time."""


def json_of(text: str) -> Any:
    """Return the JSON value that a model's answer is or holds: whole, in a Markdown fence, or the first in prose.

    Of prose only an object or a list is taken, and nothing from inside a value that is cut short. NaN and the
    infinities, which JSON does not have, are refused.

    Raises:
        ProviderError: there is none.
    """
    for candidate in (text, *_FENCE.findall(text)):
        try:
            return DECODER.decode(candidate.strip().removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            continue
    left = _MAX_READINGS * len(text)
    for start in islice(_START.finditer(text), _MAX_STARTS):
        if left <= 0:
            break
        end = len(text)
        try:
            return DECODER.raw_decode(text, start.start())[0]
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
                break
            end = error.pos
        except RecursionError:
            break
        except ValueError:
            pass
        left -= end - start.start()
    shown = " ".join(text.split())[:80]
    raise ProviderError(f"the model's answer holds no JSON: {shown!r}", remedy="try again, or choose another model")


@dataclass(frozen=True, slots=True)
class Call:
    """What a scripted model was asked."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None
    options: Mapping[str, Any]
    total_s: float | None = None


Reply = str | Exception
Rule = Callable[[Call], Reply]


class ScriptedGenerator:
    """Answers with given replies, one after the other, or by a rule. Safe for threads.

    A reply that is an exception is raised; when all are used up, the next call is a `ProviderError`.

    Attributes:
        calls: what was asked so far, in order.
    """

    name = "scripted:replies"

    def __init__(self, replies: Iterable[Reply] | Rule) -> None:
        self._rule = replies if callable(replies) else None
        self._replies = iter(() if callable(replies) else tuple(replies))
        self._lock = threading.Lock()
        self.calls: list[Call] = []

    def generate(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        total_s: float | None = None,
    ) -> Generated:
        """Return the next reply; its tokens are counted as words."""
        call = Call(tuple(messages), schema, dict(options or {}), total_s)
        with self._lock:
            self.calls.append(call)
            reply = self._rule(call) if self._rule else next(self._replies, None)
        if reply is None:
            raise ProviderError(
                f"the scripted model has no reply for call {len(self.calls)}", remedy="give it one more"
            )
        if isinstance(reply, Exception):
            raise reply
        asked = sum(len(message.content.split()) for message in messages)
        return Generated(reply, self.name, asked, len(reply.split()))
