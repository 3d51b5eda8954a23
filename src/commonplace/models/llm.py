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
from commonplace.models.client import Budget, JsonClient, Usage, Waiting
from commonplace.models.contract import Generated, Generator, Message
from commonplace.models.providers import Named, access, named
from commonplace.settings.schema import ModelSettings

Schema = Mapping[str, Any]

PLAIN: Final = "plain"
"""The form that every server has: the schema as an instruction, and nothing else."""

_NAME: Final = "answer"
_MAX_TOKENS: Final = 4096
"""What an answer of Anthropic may have where nothing is said: their API demands a number."""


class OpenAI:
    """Chat completions: OpenAI, Ollama, vLLM, LM Studio, llama.cpp and most gateways."""

    path = "/chat/completions"
    forms: tuple[str, ...] = ("json_schema", "json_object", PLAIN)
    """The ways to ask for JSON, the best first; the last one is `PLAIN`."""

    def request(
        self, model: str, messages: Sequence[Message], schema: Schema | None, form: str, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the document that asks for an answer."""
        document: dict[str, Any] = {"model": model, "messages": []}
        if schema is not None and form == "json_schema":
            asked = {"name": _NAME, "schema": dict(schema), "strict": is_strict(schema)}
            document["response_format"] = {"type": "json_schema", "json_schema": asked}
        elif schema is not None:
            messages = _instructed(messages, instruction(schema))
            if form == "json_object":
                document["response_format"] = {"type": "json_object"}
        document["messages"] = [{"role": each.role, "content": each.content} for each in messages]
        return {**document, **options}

    def read(self, document: Mapping[str, Any]) -> Read:
        """Return what an answer says."""
        choice = _first(document.get("choices"))
        message = _mapping(choice.get("message"))
        refusal = message.get("refusal")
        reason = choice.get("finish_reason")
        return Read(
            _text(message.get("content")), reason, reason == "length", refusal if isinstance(refusal, str) else ""
        )

    def spent(self, document: Mapping[str, Any]) -> tuple[int, int]:
        """Return the tokens that an answer cost, sent and received, 0 where the server does not tell."""
        usage = _mapping(document.get("usage"))
        return _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))


class Anthropic:
    """Anthropic's messages; see `OpenAI` for what its attributes and methods are."""

    path = "/messages"
    forms: tuple[str, ...] = ("output_config", "tool", PLAIN)

    def request(
        self, model: str, messages: Sequence[Message], schema: Schema | None, form: str, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        system = [each.content for each in messages if each.role == "system" and each.content]
        document: dict[str, Any] = {"model": model, "max_tokens": _MAX_TOKENS}
        if schema is not None and form == "output_config":
            document["output_config"] = {"format": {"type": "json_schema", "schema": dict(schema)}}
        elif schema is not None and form == "tool":
            tool = {"name": _NAME, "description": "Give the answer.", "input_schema": dict(schema)}
            document.update(tools=[tool], tool_choice={"type": "tool", "name": _NAME})
        elif schema is not None:
            system.append(instruction(schema))
        if system:
            document["system"] = "\n\n".join(system)
        document["messages"] = [{"role": m.role, "content": m.content} for m in messages if m.role != "system"]
        return {**document, **_renamed(options)}

    def read(self, document: Mapping[str, Any]) -> Read:
        content = document.get("content")
        blocks = [_mapping(block) for block in content] if isinstance(content, list) else []
        reason = document.get("stop_reason")
        tools = [block["input"] for block in blocks if block.get("type") == "tool_use" and "input" in block]
        text = json.dumps(tools[0], ensure_ascii=False) if tools else _text(content)
        is_cut = reason in ("max_tokens", "model_context_window_exceeded")
        return Read(text, reason, is_cut, "for its own reasons" if reason == "refusal" else "")

    def spent(self, document: Mapping[str, Any]) -> tuple[int, int]:
        usage = _mapping(document.get("usage"))
        return _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))


@dataclass(frozen=True, slots=True)
class Read:
    """What an answer says: its text, why it ended, whether it is cut short, and why the model refused, "" if not."""

    text: str
    reason: object = None
    is_cut: bool = False
    refusal: str = ""

    def checked(self, *, must_be_whole: bool) -> str:
        """Return the text."""
        if self.refusal:
            raise ProviderError(f"the model refused to answer: {self.refusal[:200]}", remedy="change what is asked")
        if must_be_whole and self.is_cut:
            remedy = "give it a larger max_tokens, or ask for less"
            raise ProviderError("the model's answer is cut short", remedy=remedy)
        if not self.text.strip():
            why = f", it stopped for {self.reason!r}" if isinstance(self.reason, str) else ""
            raise ProviderError(f"the model's answer is empty{why}", remedy="try again, or choose another model")
        return self.text


def is_strict(schema: object) -> bool:
    """Tell whether OpenAI's strict mode takes a schema: objects closed, all their properties required."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        names = list(_mapping(schema.get("properties")))
        if schema.get("additionalProperties") is not False or sorted(schema.get("required", ())) != sorted(names):
            return False
    return all(map(is_strict, schema.values()))


def instruction(schema: Schema) -> str:
    """Return the sentence that asks for JSON where the server has no better way."""
    written = json.dumps(schema, ensure_ascii=False)
    return f"Answer with one JSON value that fulfils this JSON schema, and with nothing else: {written}"


def _instructed(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the conversation with a text at the end of its first system message: many servers take that one alone."""
    if messages[0].role != "system":
        return [Message("system", text), *messages]
    return [Message("system", f"{messages[0].content}\n\n{text}"), *messages[1:]]


def _renamed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by the names that Anthropic has for them."""
    names = {"max_completion_tokens": "max_tokens", "stop": "stop_sequences"}
    found = {names.get(name, name): value for name, value in options.items()}
    if isinstance(found.get("stop_sequences"), str):
        found["stop_sequences"] = [found["stop_sequences"]]
    return found


def _text(content: object) -> str:
    """Return the text of a content: a string, or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = [_mapping(block) for block in content] if isinstance(content, list) else []
    return "".join(block["text"] for block in blocks if isinstance(block.get("text"), str))


def _first(items: object) -> Mapping[str, Any]:
    return _mapping(items[0]) if isinstance(items, list) and items else {}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


_log = logging.getLogger(__name__)

_OURS: Final = frozenset({"model", "messages", "stream", "n", "system", "response_format", "tools", "tool_choice"})
"""Fields of a request that are not an option's to set."""
_REFUSED: Final = frozenset({400, 422})
_TOO_LONG: Final = re.compile(r"context.?(?:length|window|size)|too (?:long|large|many tokens)|maximum context", re.I)


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

    def __init__(self, name: Named, client: JsonClient, dialect: OpenAI | Anthropic) -> None:
        self._named = name
        self.name = str(name)
        self._client = client
        self._dialect = dialect
        self._learned = _Learned()

    def __repr__(self) -> str:
        return f"RemoteGenerator({self.name!r}, {self._client.access.address})"

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
        spent = self._dialect.spent(reply)
        self._client.budget.count_tokens(*spent)
        try:
            text = self._dialect.read(reply).checked(must_be_whole=must_be_whole)
            model = reply.get("model")
            return Generated(text, model if isinstance(model, str) else "", *spent)
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
    if reserved := sorted(_OURS & set(given)):
        raise UsageError(f"{', '.join(reserved)} cannot be set as an option", remedy="leave it out")
    return given


_FENCE: Final = re.compile(r"(?s)```[ \t]*[\w+-]*[ \t]*\r?\n?(.*?)(?:```|\Z)")
_START: Final = re.compile(r"[\[{]")
_MAX_STARTS: Final = 1_000
_MAX_READINGS: Final = 20
"""So many brackets of prose are tried as the beginning of a value, and so many times the answer's length is read in
all, so that no answer costs quadratic time."""


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
