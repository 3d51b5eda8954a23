"""Run a task of a spec: plan, check, ask, read, check again. It knows no model; those come from `engines`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.errors import CommonplaceError, ProviderError
from commonplace.models.contract import Generated, Message, Reranker
from commonplace.specs import retrieving
from commonplace.specs.document import Prompts, Spec, understand
from commonplace.specs.engines import Engine, Engines, open_reranker, options
from commonplace.specs.faults import SpecError
from commonplace.specs.inputs import check_early, check_input, copied, turns_of, with_defaults
from commonplace.specs.loading import plain, read_spec
from commonplace.specs.planning import Planner, Step
from commonplace.specs.references import Source, library_of, source_of
from commonplace.specs.replies import check_output, output_of
from commonplace.specs.templating import render, written

if TYPE_CHECKING:
    from commonplace.settings import Settings
    from commonplace.specs.engines import Answerer


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked of a spec.

    Attributes:
        spec: a file, or a document that was parsed already, which has no directory for references to start from.
        task: None is the first that can be run.
        generator: answers in the place of every model; or of those of the tasks that a mapping names.
        system, user: prompts in the place of those of the task.
    """

    spec: str | Path | Mapping[str, Any]
    task: str | None = None
    input: Mapping[str, Any] | None = None
    generator: Answerer | Mapping[str, Answerer] | None = None
    system: str | None = None
    user: str | None = None


def run(
    call: Call,
    settings: Settings,
    *,
    environ: Mapping[str, str] | None = None,
    reranker: Callable[[], Reranker] = open_reranker,
) -> dict[str, Any]:
    """Return the envelope of a run: of its result, or of its error, which has a `code`.

    Args:
        environ: None is the process's own.
    """
    from commonplace.models.providers import without_keys
    from commonplace.redaction import redact

    chosen = os.environ if environ is None else environ
    try:
        spec, source = opened(call.spec)
        library = library_of(settings.specs.registry, network=settings.specs.network == "on")
        step = Planner(library).plan(spec, source, call.task)
        engines = Engines(call.generator, settings.models, chosen)
        return _Run(call, step, engines, reranker).result()
    except SpecError as fault:
        envelope = fault.envelope()
        return {**envelope, "error": redact(without_keys(envelope["error"], chosen)).text}


def opened(spec: str | Path | Mapping[str, Any]) -> tuple[Spec, Source]:
    """Return a spec and where it came from.

    Raises:
        SpecError: SPEC_LOAD_ERROR.
    """
    if not isinstance(spec, str | Path):
        return understand(plain(spec, "the spec"), "the spec"), Source("the spec")
    file = Path(spec)
    document = read_spec(file)
    return understand(document, str(file)), source_of(file)


class _Run:
    """One run, whose checks that need no model are done before any is asked."""

    def __init__(self, call: Call, step: Step, engines: Engines, reranker: Callable[[], Reranker]) -> None:
        self._call = call
        self._step = step
        self._reranker = reranker
        self._input = copied(call.input if call.input is not None else {}, step.name)
        for part, prompt in (("system", call.system), ("user", call.user)):
            if prompt is not None and not isinstance(prompt, str):
                raise SpecError(f"`{part}` is {prompt!r:.80}; give a text", "RUN_ERROR", "run", step.name)
        for each in step:
            if each.refusal:
                raise SpecError(f"the task cannot be run here: {each.refusal}", "RUN_ERROR", "run", each.name)
        check_early(step, self._input)
        # By identity: two steps may have the same name.
        self._engines = {id(each): engines.engine(each) for each in step}

    def result(self) -> dict[str, Any]:
        values = copied(self._input, self._step.name)
        chain: dict[str, Any] = {}
        for before in self._step.before:
            chain[before.name] = done = self._run(before, values, None, None)
            if isinstance(done["output"], dict):
                values.update(copied(done["output"], before.name))
        envelope = self._run(self._step, values, self._call.system, self._call.user)
        if chain:
            envelope["chain"] = chain
            if any(done.get("degraded") for done in chain.values()):
                envelope["degraded"] = True
        return envelope

    def _run(self, step: Step, given: Mapping[str, Any], system: str | None, user: str | None) -> dict[str, Any]:
        task, engine = step.task, self._engines[id(step)]
        is_retriever = retrieving.is_retriever(task)
        values = with_defaults(task, copied(given, step.name))
        check_input(step, values)
        system = (task.prompts.system or "") if system is None else system
        template = user if user is not None else task.prompts.user
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
        if is_retriever and (engine.generator is None or retrieving.needs_no_call(values)):
            self._rank(engine, step, envelope)
        else:
            self._ask(engine, step, Prompts(system, asked), envelope)
        return envelope

    def _rank(self, engine: Engine, step: Step, envelope: dict[str, Any]) -> None:
        """Put into an envelope what our own re-ranker answers, or what needs no answer."""
        values = envelope["input"]
        if retrieving.needs_no_call(values):
            envelope["output"] = retrieving.retrieved(())
        else:
            try:
                envelope["output"] = retrieving.rank(self._reranker(), values)
            except CommonplaceError as error:
                raise SpecError(str(error), "RUN_ERROR", "run", step.name) from None
            if engine.degraded:
                envelope.update(degraded=True, degraded_reason=engine.degraded)
        envelope["raw_output"] = json.dumps(envelope["output"], ensure_ascii=False)
        check_output(step.task, envelope["output"])

    def _ask(self, engine: Engine, step: Step, prompts: Prompts, envelope: dict[str, Any]) -> None:
        """Put into an envelope what a model answers."""
        task, values = step.task, envelope["input"]
        answer = _answer(engine, step, prompts, values)
        envelope["raw_output"] = answer.text
        output = output_of(task, answer.text)
        if retrieving.is_retriever(task):
            output = retrieving.repair(task, output, values)
        check_output(task, output)
        envelope["output"] = output
        if answer.input_tokens or answer.output_tokens:
            envelope["usage"] = {
                "prompt_tokens": answer.input_tokens,
                "completion_tokens": answer.output_tokens,
                "total_tokens": answer.input_tokens + answer.output_tokens,
            }


def _answer(engine: Engine, step: Step, prompts: Prompts, values: Mapping[str, Any]) -> Generated:
    """Ask a model: the system prompt, the history as it came, the user's prompt."""
    assert engine.generator is not None
    messages = [Message("system", prompts.system)] if prompts.system else []
    messages += [*turns_of(values), Message("user", prompts.user or "")]
    schema = None if step.task.is_text or not step.task.output else {"type": "object", **step.task.output}
    try:
        answer = engine.generator.generate(messages, schema=schema, options=options(step.intelligence))
        text: object = answer.text
    except ProviderError as error:
        raise SpecError(str(error), "PROVIDER_ERROR", "run", step.name) from None
    except Exception as error:  # a generator may be the caller's own, and fail in any way
        message = str(error) if isinstance(error, CommonplaceError) else f"the generator failed: {_named(error)}"
        raise SpecError(message, "RUN_ERROR", "run", step.name) from None
    if not isinstance(text, str):
        message = f"the generator answered {type(text).__name__}, not text"
        raise SpecError(message, "RUN_ERROR", "run", step.name)
    return answer


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
