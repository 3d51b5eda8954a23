"""The language models of an engine: opened when they are first asked, with one budget. It knows names, not prompts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from commonplace.models.contract import Generator, Reranker
    from commonplace.models.limits import Budget
    from commonplace.settings import ModelSettings
    from commonplace.types import RerankMode

DEFAULT_RERANKER: Final = "openai:gpt-4o-mini"
"""Where the settings name no model; the knowledge service's contract names this one."""


class Models:
    """Opens each model once, so that what it learned of its server is kept. Safe for threads."""

    def __init__(self, settings: ModelSettings, budget: Budget) -> None:
        self._settings = settings
        self._budget = budget
        self._opened: dict[str, Generator] = {}
        self._lock = threading.Lock()

    @property
    def reranker_name(self) -> str:
        """Which model re-ranks: the one that the settings name for it, else their language model, else the default."""
        return self._settings.reranker_model or self._settings.generator or DEFAULT_RERANKER

    def generator(self, name: str) -> Generator:
        """Return the language model of a name.

        Raises:
            ProviderError: it needs a key and there is none.
            UsageError: the name or an address is malformed.
        """
        from commonplace.models.generating import open_generator

        with self._lock:
            if name not in self._opened:
                self._opened[name] = open_generator(name, settings=self._settings, budget=self._budget)
            return self._opened[name]

    def reranker(self, mode: RerankMode) -> Reranker:
        """Return the re-ranker of a mode, "single" or "batch".

        Raises:
            ProviderError: its model needs a key and there is none.
            UsageError: the model's name or an address is malformed.
        """
        from commonplace.models.reranking import make_reranker

        return make_reranker(self.generator(self.reranker_name), mode, self._settings.total_timeout_s)
