"""Choose the model of a task: a given one, the spec's own, or the built-in re-ranker.

An address in a spec gets an API key only if it is the provider's own or in the user's settings, since specs are
untrusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import CommonplaceError, ProviderError
from commonplace.models.client import Budget
from commonplace.models.contract import Generated, Generator, Message, Reranker
from commonplace.models.llm import open_generator
from commonplace.models.minilm import MinilmEmbedder
from commonplace.models.providers import access
from commonplace.models.static_reranking import StaticReranker
from commonplace.settings.schema import ModelSettings
from commonplace.specs.document import Intelligence, SpecError
from commonplace.specs.plan import Step
from commonplace.specs.retriever import is_retriever

Answerer = Generator | Callable[[str, str], str]
"""A model, or a function of a system prompt and a user prompt."""

OURS: Final = "commonplace"
OURS_MODEL: Final = "minilm"
PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "local": "ollama",
    "custom": "openai",
}
"""What speaks for each engine that a spec can name, besides our own."""

_NO_FIELDS: Final = frozenset({"pricing", "enable_layer3", "enable_onnx", "openai_api_key", "claude_api_key"})
"""What a spec configures that is no field of a request."""
_OPENAI_FIELDS: Final = frozenset({"reasoning_effort", "frequency_penalty", "presence_penalty"})


@dataclass(frozen=True, slots=True)
class Engine:
    """What answers a step.

    Attributes:
        name, model: as the result tells them.
        generator: None where our own re-ranker answers.
        degraded: why our own re-ranker stands in for a model, or "".
    """

    name: str
    model: str
    generator: Generator | None = None
    degraded: str = ""


class Engines:
    """Finds the engine of each step of one call."""

    def __init__(
        self, given: Answerer | Mapping[str, Answerer] | None, settings: ModelSettings, environ: Mapping[str, str]
    ) -> None:
        self._given, self._settings, self._environ = given, settings, environ
        self._budget: Budget = Budget(settings.max_calls, settings.max_tokens)

    def engine(self, step: Step) -> Engine:
        """Return what answers a step."""
        asked = step.intelligence
        given = self._given.get(step.name) if isinstance(self._given, Mapping) else self._given
        if given is not None:
            return Engine(asked.engine, asked.model, _generator(given))
        if asked.engine == OURS:
            if not is_retriever(step.task):
                message = f"engine {OURS!r} ranks memories and nothing else; name a language model for this task"
                raise SpecError(message, "RUN_ERROR", "run", step.name)
            return Engine(OURS, asked.model)
        try:
            return Engine(asked.engine, asked.model, self._opened(asked, step))
        except ProviderError as error:
            if is_retriever(step.task):
                return Engine(OURS, OURS_MODEL, degraded=str(error))
            raise SpecError(str(error), "PROVIDER_ERROR", "run", step.name) from None
        except CommonplaceError as error:
            raise SpecError(str(error), "RUN_ERROR", "run", step.name) from None

    def _opened(self, asked: Intelligence, step: Step) -> Generator:
        if asked.engine not in PROVIDERS:
            known = ", ".join([*PROVIDERS, OURS])
            message = f"engine {asked.engine!r} is not run here; those that are: {known}"
            raise SpecError(message, "RUN_ERROR", "run", step.name)
        if asked.module:
            message = f"module {asked.module!r} is code, which a spec may not bring along; give `generator=` instead"
            raise SpecError(message, "RUN_ERROR", "run", step.name)
        if asked.engine == "custom" and not asked.endpoint:
            raise SpecError("engine 'custom' needs an `endpoint`", "RUN_ERROR", "run", step.name)
        settings, provider, endpoint = self._settings, PROVIDERS[asked.engine], asked.endpoint or ""
        if step.task.timeout_s is not None:
            total_s = float(min(settings.total_timeout_s, step.task.timeout_s))
            settings = replace(settings, total_timeout_s=total_s)
        usual = access(provider, sends_key=False, settings=settings, environ=self._environ).address
        named = access(provider, base_url=endpoint, sends_key=False, settings=settings, environ=self._environ).address
        if named == access(provider, sends_key=False, environ={}).address:
            endpoint = ""  # where a spec names the provider's own address, the user's word about it holds
        return open_generator(
            f"{provider}:{asked.model}",
            base_url=endpoint,
            sends_key=not endpoint or named == usual,
            settings=settings,
            environ=self._environ,
            budget=self._budget,
        )


def options(asked: Intelligence) -> dict[str, Any]:
    """Return what a spec configures for every request to its model."""
    left_out = _NO_FIELDS | (_OPENAI_FIELDS if asked.engine == "anthropic" else frozenset())
    return {name: value for name, value in asked.config.items() if name not in left_out}


def open_reranker() -> Reranker:
    """Return our own re-ranker, which asks nobody: what turns mean is judged by the transformer that ships."""
    return StaticReranker(embedder=MinilmEmbedder.load())


def _generator(given: Answerer) -> Generator:
    return cast("Generator", given) if hasattr(given, "generate") else _Called(given)


class _Called:
    name = "function"

    def __init__(self, function: Callable[[str, str], str]) -> None:
        self._function = function

    def generate(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002 - a function is asked in words alone
        options: Mapping[str, Any] | None = None,  # noqa: ARG002
        total_s: float | None = None,  # noqa: ARG002
    ) -> Generated:
        """Call the function; earlier turns, for which it has no place, stand as JSON before the user's prompt."""
        system = "".join(message.content for message in messages[:1] if message.role == "system")
        turns = [{"role": each.role, "content": each.content} for each in messages[:-1] if each.role != "system"]
        user = messages[-1].content
        if turns:
            user = f"Earlier turns, oldest first:\n{json.dumps(turns, ensure_ascii=False)}\n\n{user}"
        return Generated(self._function(system, user))
