"""Generators: remote language models (OpenAI, Anthropic and compatible) and a scripted one for tests.

Most servers implement OpenAI's chat completions; Anthropic has its own messages format. Written from the providers'
references: https://platform.openai.com/docs/api-reference/chat and
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
from commonplace.models.client import Budget, JsonClient, Timing
from commonplace.models.contract import Generated, Generator, Message
from commonplace.models.providers import ModelName, access, parse_model_name
from commonplace.settings.schema import ModelSettings

_log = logging.getLogger(__name__)
Schema = Mapping[str, Any]

_MAX_TOKENS: Final = 4096
"""Default `max_tokens` of Anthropic requests: their API requires a number."""
_ANTHROPIC_NAMES: Final = {"max_completion_tokens": "max_tokens", "stop": "stop_sequences"}
_OURS: Final = frozenset({"model", "messages", "stream", "n", "system", "response_format", "tools", "tool_choice"})
"""Request fields that options must not set."""
_IN_WORDS: Final = "Answer with one JSON value that fulfils this JSON schema, and with nothing else: "
_REFUSED: Final = frozenset({400, 422})
_TOO_LONG: Final = re.compile(r"context.?(?:length|window|size)|too (?:long|large|many tokens)|maximum context", re.I)


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The parsed answer of a model.

    Attributes:
        token_counts: tokens sent and received, 0 if the server does not report them.
        reason: why the answer ended.
        refusal: why the model refused, "" if it did not.
    """

    text: str
    token_counts: tuple[int, int]
    reason: object
    is_cut: bool
    refusal: str = ""


class OpenAI:
    """Chat completions: OpenAI, Ollama, vLLM, LM Studio, llama.cpp and most gateways."""

    path = "/chat/completions"

    def request(
        self, model: str, messages: Sequence[Message], schema: Schema | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the JSON document of the request."""
        contents = [{"role": message.role, "content": message.content} for message in messages]
        document: dict[str, Any] = {"model": model, "messages": contents, **options}
        if schema is not None:
            json_schema = {"name": "answer", "schema": dict(schema), "strict": is_strict(schema)}
            document["response_format"] = {"type": "json_schema", "json_schema": json_schema}
        return document

    def read(self, document: Mapping[str, Any]) -> ParsedReply:
        choices = document.get("choices")
        choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
        message, usage = _mapping(choice.get("message")), _mapping(document.get("usage"))
        refusal, reason = message.get("refusal"), choice.get("finish_reason")
        spent = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        refused = refusal if isinstance(refusal, str) else ""
        return ParsedReply(_text(message.get("content")), spent, reason, reason == "length", refused)


class Anthropic:
    """Anthropic's messages; its methods are those of `OpenAI`."""

    path = "/messages"

    def request(
        self, model: str, messages: Sequence[Message], schema: Schema | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        turns = [{"role": turn.role, "content": turn.content} for turn in messages if turn.role != "system"]
        renamed = {_ANTHROPIC_NAMES.get(name, name): value for name, value in options.items()}
        if isinstance(renamed.get("stop_sequences"), str):
            renamed["stop_sequences"] = [renamed["stop_sequences"]]
        document: dict[str, Any] = {"model": model, "max_tokens": _MAX_TOKENS, "messages": turns, **renamed}
        if system := [message.content for message in messages if message.role == "system" and message.content]:
            document["system"] = "\n\n".join(system)
        if schema is not None:
            document["output_config"] = {"format": {"type": "json_schema", "schema": dict(schema)}}
        return document

    def read(self, document: Mapping[str, Any]) -> ParsedReply:
        usage, reason = _mapping(document.get("usage")), document.get("stop_reason")
        spent = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
        is_cut = reason in ("max_tokens", "model_context_window_exceeded")
        refused = "for its own reasons" if reason == "refusal" else ""
        return ParsedReply(_text(document.get("content")), spent, reason, is_cut, refused)


def is_strict(schema: object) -> bool:
    """Return whether OpenAI's strict mode accepts a schema: all objects closed, all properties required."""
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
    """Return the text of a message's content, a string or a list of blocks."""
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
    timing: Timing | None = None,
) -> Generator:
    """Return the language model of a name. Nothing is sent before its first call.

    Args:
        name: as `providers.parse_model_name` reads it.
        base_url, sends_key: as in `providers.access`.
        budget: shared by several models; None creates one from the settings.
        environ, timing: for tests; None is the process's environment and real time.

    Raises:
        UsageError: the name, the address or the key is malformed.
        ProviderError: the provider needs a key and none is set.
    """
    parts = parse_model_name(name)
    server = access(parts.provider, base_url=base_url, sends_key=sends_key, settings=settings, environ=environ)
    client = JsonClient(server, settings, budget, timing)
    return RemoteGenerator(parts, client, Anthropic() if parts.provider == "anthropic" else OpenAI())


@dataclass(frozen=True, slots=True)
class _Learned:
    """What a model accepts, as learned from refusals: a schema only in words, fewer options, a renamed `max_tokens`."""

    in_words: bool = False
    dropped: frozenset[str] = frozenset()
    is_renamed: bool = False

    def options(self, requested: Mapping[str, Any]) -> dict[str, Any]:
        accepted = {name: value for name, value in requested.items() if name not in self.dropped}
        if self.is_renamed and "max_tokens" in accepted:
            accepted["max_completion_tokens"] = accepted.pop("max_tokens")
        return {name: value for name, value in accepted.items() if name not in self.dropped}


class RemoteGenerator:
    """A model behind an API. Safe for threads; a request form that its server refused is not sent again."""

    def __init__(self, name: ModelName, client: JsonClient, dialect: OpenAI | Anthropic) -> None:
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
        """Return the model's answer to a conversation; the API key is replaced if the answer contains it.

        If the server refuses a schema, the schema is put into words; if it refuses an option, the option is dropped
        with a warning. `total_s` and the settings limit all these attempts together.

        Raises:
            ProviderError: no answer, an empty one, or, with a schema, a truncated one.
            UsageError: an option is reserved, or there is no message.
        """
        if not messages:
            raise UsageError("there is no message", remedy="ask something")
        requested = {name: value for name, value in (options or {}).items() if value is not None}
        if reserved := sorted(_OURS & set(requested)):
            raise UsageError(f"{', '.join(reserved)} cannot be set as an option", remedy="leave it out")
        learned, deadline = self._learned, self._client.deadline(total_s)
        while True:
            accepted, conversation, form = learned.options(requested), messages, schema
            if schema is not None and learned.in_words:
                system = [turn.content for turn in messages[:1] if turn.role == "system"]  # many servers take only one
                text = "\n\n".join([*system, f"{_IN_WORDS}{json.dumps(schema, ensure_ascii=False)}"])
                conversation, form = [Message("system", text), *messages[len(system) :]], None
            document = self._dialect.request(self._model, conversation, form, accepted)
            try:
                reply = self._client.post(self._dialect.path, document, deadline=deadline)
            except ProviderError as error:
                relaxed = self._relaxed(learned, error, accepted, has_schema=schema is not None)
                if relaxed is None:
                    raise
                learned = relaxed
                continue
            self._learned = learned
            return self._read(self._client.scrubbed(reply), must_be_whole=schema is not None)

    def _relaxed(
        self, learned: _Learned, error: ProviderError, options: Mapping[str, Any], *, has_schema: bool
    ) -> _Learned | None:
        """Return a less demanding request form after a refusal; None if there is none."""
        message = str(error)
        if error.status not in _REFUSED or _TOO_LONG.search(message):
            return None
        if "max_tokens" in options and "max_completion_tokens" in message:
            return replace(learned, is_renamed=True)
        for name in options:
            if re.search(rf"\b{re.escape(name)}\b", message):
                _log.warning("%s does not take %s, which is left out", self.name, name)
                return replace(learned, dropped=learned.dropped | {name})
        return replace(learned, in_words=True) if has_schema and not learned.in_words else None

    def _read(self, reply: Mapping[str, Any], *, must_be_whole: bool) -> Generated:
        answer = self._dialect.read(reply)
        # Unusable answers cost tokens too.
        self._client.budget.count_tokens(sum(answer.token_counts))
        if answer.refusal:
            raise self._unusable(f"the model refused to answer: {answer.refusal[:200]}", "change what is asked")
        if must_be_whole and answer.is_cut:
            raise self._unusable("the model's answer is cut short", "give it a larger max_tokens, or ask for less")
        if not answer.text.strip():
            reason = f", it stopped for {answer.reason!r}" if isinstance(answer.reason, str) else ""
            raise self._unusable(f"the model's answer is empty{reason}", "try again, or choose another model")
        model = reply.get("model")
        return Generated(answer.text, model if isinstance(model, str) else "", *answer.token_counts)

    def _unusable(self, problem: str, remedy: str) -> ProviderError:
        return ProviderError(f"{self.name}: {problem}", status=200, remedy=remedy)


_FENCE: Final = re.compile(r"(?s)```[ \t]*[\w+-]*[ \t]*\r?\n?(.*?)(?:```|\Z)")
_START: Final = re.compile(r"[\[{]")
_MAX_STARTS: Final = 1_000
_MAX_READINGS: Final = 20
"""Maximum brackets tried as the start of a value (`_MAX_STARTS`), and maximum characters parsed in all as a multiple of
the answer's length (`_MAX_READINGS`), so that no answer costs quadratic time."""


def json_of(text: str) -> Any:
    """Return the JSON value of a model's answer: the whole answer, a Markdown fence, or the first value in prose.

    In prose only objects and lists count, and no value inside a truncated one. NaN and the infinities, which JSON does
    not have, are rejected.

    Raises:
        ProviderError: the answer holds no JSON value.
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
class ScriptedCall:
    """One call of a scripted model."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None
    options: Mapping[str, Any]
    total_s: float | None = None


Reply = str | Exception
Rule = Callable[[ScriptedCall], Reply]


class ScriptedGenerator:
    """Answers with a fixed sequence of replies, or by a rule. Safe for threads.

    A reply that is an exception is raised; a call after the last reply raises a `ProviderError`.

    Attributes:
        calls: the calls so far, in order.
    """

    name = "scripted:replies"

    def __init__(self, replies: Iterable[Reply] | Rule) -> None:
        self._rule = replies if callable(replies) else None
        self._replies = iter(() if callable(replies) else tuple(replies))
        self._lock = threading.Lock()
        self.calls: list[ScriptedCall] = []

    def generate(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        total_s: float | None = None,
    ) -> Generated:
        """Return the next reply; each word counts as one token."""
        call = ScriptedCall(tuple(messages), schema, dict(options or {}), total_s)
        with self._lock:
            self.calls.append(call)
            reply = self._rule(call) if self._rule else next(self._replies, None)
        if reply is None:
            raise ProviderError(
                f"the scripted model has no reply for call {len(self.calls)}", remedy="give it one more"
            )
        if isinstance(reply, Exception):
            raise reply
        input_words = sum(len(message.content.split()) for message in messages)
        return Generated(reply, self.name, input_words, len(reply.split()))
