"""The console that everything for people is printed on. It lets styles through, and no control character of a text."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from commonplace.text.escaping import harmless


class Terminal(Console):
    """A console that never wraps, guesses or colours words by itself; in a pipe it prints plain text."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is to be written; whatever is no control code of rich's own is text, and made harmless."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(harmless(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Leave it to the end of the run: a reader that has seen enough is no failure, and rich would exit with 1."""
        raise  # noqa: PLE0704 - called while the error is handled
