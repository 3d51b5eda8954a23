"""Run a task of a spec: plan, choose a model, validate input, call the model, validate output.

An address in a spec gets an API key only if it is the provider's own or in the user's settings, since specs are
untrusted.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import CommonplaceError, ProviderError
from commonplace.formats.json_values import joined, read_json
from commonplace.formats.yaml import fault_of
from commonplace.models.client import Budget
from commonplace.models.contract import Generated, Generator, Message, Reranker
from commonplace.models.llm import json_of, open_generator
from commonplace.models.minilm import MinilmEmbedder
from commonplace.models.providers import access, without_keys
from commonplace.models.static_reranking import StaticReranker
from commonplace.redaction import redact
from commonplace.settings import Settings
from commonplace.settings.schema import ModelSettings
from commonplace.specs import retriever
from commonplace.specs.check import Fault, faults_of
from commonplace.specs.document import SpecError, Task, plain, read_spec, understand
from commonplace.specs.plan import Planner, Source, Step, source_of

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
        name, model: as the result names them.
        generator: None where our own re-ranker answers.
        degraded: why our own re-ranker stands in for a model, or "".
    """

    name: str
    model: str
    generator: Generator | None = None
    degraded: str = ""


def open_engine(
    step: Step,
    given: Answerer | Mapping[str, Answerer] | None,
    settings: ModelSettings,
    environ: Mapping[str, str],
    budget: Budget,
) -> Engine:
    """Return what answers a step: what the caller gave, what the spec asks for, or our own re-ranker."""
    asked = step.intelligence
    answerer = given.get(step.name) if isinstance(given, Mapping) else given
    if answerer is not None:
        model = answerer if hasattr(answerer, "generate") else _Called(answerer)
        return Engine(asked.engine, asked.model, cast("Generator", model))
    if asked.engine == OURS and retriever.is_retriever(step.task):
        return Engine(OURS, asked.model)
    problem = ""
    if asked.engine == OURS:
        problem = f"engine {OURS!r} ranks memories and nothing else; name a language model for this task"
    elif asked.engine not in PROVIDERS:
        problem = f"engine {asked.engine!r} is not run here; those that are: {', '.join([*PROVIDERS, OURS])}"
    elif asked.module:
        problem = f"module {asked.module!r} is code, which a spec may not bring along; give `generator=` instead"
    elif asked.engine == "custom" and not asked.endpoint:
        problem = "engine 'custom' needs an `endpoint`"
    if problem:
        raise SpecError(problem, "RUN_ERROR", "run", step.name)
    provider, endpoint = PROVIDERS[asked.engine], asked.endpoint or ""
    if step.task.timeout_s is not None:
        settings = replace(settings, total_timeout_s=float(min(settings.total_timeout_s, step.task.timeout_s)))
    try:
        usual = access(provider, sends_key=False, settings=settings, environ=environ).address
        named = access(provider, base_url=endpoint, sends_key=False, settings=settings, environ=environ).address
        if named == access(provider, sends_key=False, environ={}).address:
            endpoint = ""  # where a spec names the provider's own address, the user's word about it holds
        generator = open_generator(
            f"{provider}:{asked.model}",
            base_url=endpoint,
            sends_key=not endpoint or named == usual,
            settings=settings,
            environ=environ,
            budget=budget,
        )
    except ProviderError as error:
        if retriever.is_retriever(step.task):
            return Engine(OURS, OURS_MODEL, degraded=str(error))
        raise SpecError(str(error), "PROVIDER_ERROR", "run", step.name) from None
    except CommonplaceError as error:
        raise SpecError(str(error), "RUN_ERROR", "run", step.name) from None
    return Engine(asked.engine, asked.model, generator)


def open_reranker() -> Reranker:
    """Return our own re-ranker, which asks nobody: what turns mean is judged by the transformer that ships."""
    return StaticReranker(embedder=MinilmEmbedder.load())


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
        """Call the function; earlier turns, for which it has no place, precede the user's prompt as JSON."""
        system = "".join(message.content for message in messages[:1] if message.role == "system")
        turns = [{"role": each.role, "content": each.content} for each in messages[:-1] if each.role != "system"]
        user = messages[-1].content
        if turns:
            user = f"Earlier turns, oldest first:\n{json.dumps(turns, ensure_ascii=False)}\n\n{user}"
        return Generated(self._function(system, user))


HISTORY = "history"
"""The input that is not put into the prompt's text but becomes turns of the conversation."""

_TURNS: Mapping[str, Any] = {"type": ["array", "null"], "items": retriever.TURN}


def copied(values: object, task: str) -> dict[str, Any]:
    """Return a deep copy of an input, which nothing that happens here can change."""
    if not isinstance(values, Mapping):
        raise _unfit(f"the input must be an object, not {type(values).__name__}", task)
    try:
        text = json.dumps(dict(values), ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        raise _unfit("the input holds half a character, which no encoding has", task) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise _unfit(f"the input is not JSON: {fault_of(error)}", task) from None
    copy: dict[str, Any] = json.loads(text)
    return copy


def with_defaults(task: Task, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the default of every input that is missing and has one."""
    defaults = {
        name: field["default"]
        for name, field in task.input.get("properties", {}).items()
        if isinstance(field, Mapping) and "default" in field
    }
    if retriever.is_retriever(task):
        defaults.setdefault("top_k", retriever.DEFAULT_TOP_K)
    return {**values, **{name: value for name, value in defaults.items() if name not in values}}


def _wrong(faults: Sequence[Fault]) -> str:
    return f"the input is wrong: {'; '.join(map(str, faults[:3]))}"


def _unfit(message: str, task: str) -> SpecError:
    return SpecError(message, "CHAIN_INPUT_MISSING", "input_validation", task)


_FENCED: Final = re.compile(r"```[^\n`]*\n(.*)```", re.DOTALL)


def output_of(task: Task, text: str) -> object:
    """Return a task's output: the text itself where that is its format, else the JSON value that it is or holds.

    Where no schema is promised, nothing can tell a value from an aside: the value must be all there is, bare or in a
    fence, and any other reply is the output unchanged.
    """
    if task.is_text:
        return text
    if task.output:
        try:
            return json_of(text)
        except ProviderError:
            what = f"holds no JSON; it begins {text.strip()[:60]!r}" if text.strip() else "is empty"
            raise _broken(task, f"the answer {what}") from None
    fenced = _FENCED.fullmatch(text.strip())
    try:
        return read_json(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return text


def check_output(task: Task, output: object) -> None:
    """Hold an output to the task's schema and contract; text is held to neither."""
    if task.is_text:
        return
    faults = faults_of(output, {"type": "object", **task.output}) if task.output else []
    if faults:
        raise _broken(task, f"the answer breaks the output schema: {faults[0]}")
    if not isinstance(output, Mapping):
        return
    rules: Any = task.contract.get("response_contract", {}).get("output_format", {})
    missing = [name for name in rules.get("required_fields", ()) if name not in output]
    if missing:
        message = f"the output lacks {', '.join(map(repr, missing))}, which the behavioural contract requires"
        raise SpecError(message, "CONTRACT_VIOLATION", "contract", task.name)


def _broken(task: Task, message: str) -> SpecError:
    return SpecError(message, "OUTPUT_SCHEMA_ERROR", "output_validation", task.name)


def render(template: str, values: Mapping[str, Any]) -> str:
    """Replace `{k}`, `{{ k }}` and `{{ input.k }}` for every key there is, in one pass.

    What a value brings along is never read again, so that text from outside cannot ask for another value. Every
    other brace stays as it is, among them those of JSON written out in a prompt.
    """
    if not values:
        return template
    # The longest name first: of two keys that could match at one place, the shorter may be the other's beginning.
    names = "|".join(re.escape(name) for name in sorted(values, key=lambda name: (-len(name), name)))
    placeholder = re.compile(rf"\{{\{{ (?:input\.)?({names}) \}}\}}|\{{({names})\}}")
    return placeholder.sub(lambda found: written(values[found[1] if found[1] is not None else found[2]]), template)


def written(value: object) -> str:
    """Return a value as a prompt has it: text unchanged, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def run(  # noqa: PLR0913 - the arguments of `commonplace.run_spec`, and what tests replace
    spec: str | Path | Mapping[str, Any],
    task: str | None,
    values: Mapping[str, Any] | None,
    generator: Answerer | Mapping[str, Answerer] | None,
    settings: Settings,
    *,
    system: str | None = None,
    user: str | None = None,
    environ: Mapping[str, str] | None = None,
    reranker: Callable[[], Reranker] = open_reranker,
) -> dict[str, Any]:
    """Return the envelope of a run: of its result, or of its error, which has a `code`.

    Args:
        spec: a file, or a document that was parsed already, which has no directory for references to start from.
        task: None is the first that can be run.
        values: the input.
        generator: answers in the place of every model; or of those of the tasks that a mapping names.
        system, user: prompts in the place of those of the task.
        environ: None is the process's own.
    """
    chosen = os.environ if environ is None else environ
    try:
        if isinstance(spec, str | Path):
            file = Path(spec)
            document, source = understand(read_spec(file), str(file)), source_of(file)
        else:
            document, source = understand(plain(spec, "the spec"), "the spec"), Source("the spec")
        planner = Planner(settings.specs.registry, network=settings.specs.network == "on")
        step = planner.plan(document, source, task)
        values = copied({} if values is None else values, step.name)
        _check_early(step, values, system, user)
        budget = Budget(settings.models.max_calls, settings.models.max_tokens)
        # All of them before any is asked; by identity, since two steps may have the same name.
        engines = {id(each): open_engine(each, generator, settings.models, chosen, budget) for each in step}
        chain: dict[str, Any] = {}
        for before in step.before:
            chain[before.name] = given = _result(before, engines[id(before)], values, None, None, reranker)
            if isinstance(given["output"], dict):
                values.update(copied(given["output"], before.name))
        envelope = _result(step, engines[id(step)], values, system, user, reranker)
        if chain:
            envelope["chain"] = chain
            if any(each.get("degraded") for each in chain.values()):
                envelope["degraded"] = True
    except SpecError as fault:
        error = redact(without_keys(str(fault), chosen)).text
        envelope = {"error": error, "code": fault.code, "stage": fault.stage}
        if fault.task is not None:
            envelope["task"] = fault.task
    return envelope


def _check_early(step: Step, given: Mapping[str, Any], system: object, user: object) -> None:
    """Find what no model and no dependency can mend, before the first of them costs anything."""
    for part, prompt in (("system", system), ("user", user)):
        if prompt is not None and not isinstance(prompt, str):
            raise SpecError(f"`{part}` is {prompt!r:.80}; give a text", "RUN_ERROR", "run", step.name)
    for each in step:
        if each.refusal:
            raise SpecError(f"the task cannot be run here: {each.refusal}", "RUN_ERROR", "run", each.name)
    if not step.before:
        return
    outputs = [{} if before.task.is_text else before.task.output.get("properties", {}) for before in step.before]
    made = {name for properties in outputs for name in properties}
    values = {name: value for name, value in with_defaults(step.task, dict(given)).items() if name not in made}
    # A dependency that does not say what it gives may give anything.
    required = [name for name in step.task.input.get("required", ()) if name not in made] if all(outputs) else []
    if faults := faults_of(values, {**step.task.input, "required": required}):
        raise _unfit(_wrong(faults), step.name)


def _result(
    step: Step,
    engine: Engine,
    given: Mapping[str, Any],
    system: str | None,
    user: str | None,
    reranker: Callable[[], Reranker],
) -> dict[str, Any]:
    task = step.task
    is_retriever = retriever.is_retriever(task)
    values = with_defaults(task, copied(given, step.name))
    faults = faults_of(values, task.input)
    if HISTORY in values:
        faults += [Fault(joined(HISTORY, each.path), each.message) for each in faults_of(values[HISTORY], _TURNS)]
    if is_retriever and not faults:
        faults = faults_of(values, retriever.INPUT)
    if faults:
        raise _unfit(_wrong(faults), step.name)
    system = (task.system or "") if system is None else system
    template = user if user is not None else task.user
    asked = written(values) if template is None else render(template, values)
    envelope: dict[str, Any] = {
        "task": step.name,
        "output": None,
        "input": values,
        "prompt": f"{system}\n\n{asked}".strip(),
        "engine": engine.name,
        "model": engine.model,
        "raw_output": "",
    }
    if step.delegated_to is not None:
        envelope["delegated_to"] = step.delegated_to
    if is_retriever:
        envelope["degraded"] = False
    if not is_retriever or (engine.generator is not None and not retriever.needs_no_call(values)):
        _ask(engine, step, system, asked, envelope)
        return envelope
    try:
        needs_no_call = retriever.needs_no_call(values)
        output = retriever.retrieved(()) if needs_no_call else retriever.rank(reranker(), values)
    except CommonplaceError as error:
        raise SpecError(str(error), "RUN_ERROR", "run", step.name) from None
    if engine.degraded and not needs_no_call:
        envelope.update(degraded=True, degraded_reason=engine.degraded)
    envelope.update(output=output, raw_output=json.dumps(output, ensure_ascii=False))
    check_output(task, output)
    return envelope


def _ask(engine: Engine, step: Step, system: str, asked: str, envelope: dict[str, Any]) -> None:
    assert engine.generator is not None
    task, values = step.task, envelope["input"]
    messages = [Message("system", system)] if system else []
    messages += [Message(turn["role"], turn["content"]) for turn in values.get(HISTORY) or ()]
    messages.append(Message("user", asked))
    schema = None if task.is_text or not task.output else {"type": "object", **task.output}
    asks = step.intelligence
    left_out = _NO_FIELDS | (_OPENAI_FIELDS if asks.engine == "anthropic" else frozenset())
    options = {name: value for name, value in asks.config.items() if name not in left_out}
    try:
        answer = engine.generator.generate(messages, schema=schema, options=options)
        text: object = answer.text
    except ProviderError as error:
        raise SpecError(str(error), "PROVIDER_ERROR", "run", step.name) from None
    except Exception as error:  # a generator may be the caller's own, and fail in any way
        named = f"{type(error).__name__}: {error}".rstrip(": ")
        message = str(error) if isinstance(error, CommonplaceError) else f"the generator failed: {named}"
        raise SpecError(message, "RUN_ERROR", "run", step.name) from None
    if not isinstance(text, str):
        message = f"the generator answered {type(text).__name__}, not text"
        raise SpecError(message, "RUN_ERROR", "run", step.name)
    envelope["raw_output"] = text
    output = output_of(task, text)
    if retriever.is_retriever(task):
        output = retriever.repair(task, output, values)
    check_output(task, output)
    envelope["output"] = output
    if answer.input_tokens or answer.output_tokens:
        envelope["usage"] = {
            "prompt_tokens": answer.input_tokens,
            "completion_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
        }
