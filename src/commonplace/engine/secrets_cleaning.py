"""Put placeholders for secrets into texts of every shape, and remember what was found. It knows no store and no file.

A secret that was recognised in one place is one wherever it stands: a key that one memory calls so is replaced in
another that does not. That holds for disordered values alone; a short password may be somebody's ordinary word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

from commonplace.forgetting.needles import Collector, Needles
from commonplace.logs import query_hash
from commonplace.redaction import Secret, find_secrets, with_placeholders
from commonplace.redaction.values import is_disordered
from commonplace.types import Chunk


class Known:
    """Secrets that were found somewhere, to be found again where nothing else tells them.

    Args:
        kinds: the kind of each.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        telling = {value: kind for value, kind in kinds.items() if is_disordered(value)}
        self._needles = Needles({value.encode("utf-8", "surrogatepass"): kind for value, kind in telling.items()})

    def find(self, text: str) -> Iterator[Secret]:
        """Yield where they stand, in no order, some perhaps in others; a part of a longer word is none of them."""
        if not len(self._needles):
            return
        data = text.encode("utf-8", "surrogatepass")
        for offset, needle in self._needles.places(data):
            start = len(data[:offset].decode("utf-8", "surrogatepass"))
            end = start + len(needle.decode("utf-8", "surrogatepass"))
            if not (_is_word(text[start - 1 : start]) or _is_word(text[end : end + 1])):
                yield Secret(self._needles.kind(needle), start, end)


NOTHING = Known({})


@dataclass(slots=True)
class Cleaner:
    """Cleans texts, and remembers which secrets they had.

    Attributes:
        known: secrets that were found elsewhere.
        kept: secrets that stay, for they are a part of something's name.
        kinds: the kind of each secret that was found.
        parts: what single texts had of a secret that goes from one to the next.
    """

    known: Known = NOTHING
    kept: frozenset[str] = frozenset()
    kinds: dict[str, str] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)

    def counts(self) -> dict[str, int]:
        """Return how many different secrets of each kind were found, sorted by kind."""
        return dict(sorted(Counter(self.kinds.values()).items()))

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        while secrets := self._find(text):
            text = with_placeholders(text, secrets)
        return text

    def find(self, text: str) -> list[Secret]:
        """Return the secrets in a text, in order, none overlapping another."""
        return self._find(text)

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return tags and the like without secrets, each once."""
        return tuple(dict.fromkeys(map(self.text, texts)))

    def passages(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return the passages of one text without secrets, also without one that goes from a passage to the next."""
        cleaned = list(chunks)
        while True:
            before = cleaned
            cleaned = [replace(chunk, text=text) for chunk, text in zip(before, self._across(before), strict=True)]
            cleaned = [replace(each, text=self.text(each.text), heading=self.text(each.heading)) for each in cleaned]
            if cleaned == before:
                return cleaned

    def value(self, value: Any, name: str = "") -> Any:
        """Return what JSON holds without secrets, keys included, of which two never become one.

        Args:
            name: the key that it stands under, which may tell that it is a secret.
        """
        if isinstance(value, str):
            return self._named(name, self.text(value))
        if isinstance(value, list):
            return [self.value(each, name) for each in value]
        if not isinstance(value, dict):
            return value
        cleaned: dict[str, Any] = {}
        for key, inner in value.items():
            clean = self.text(key)
            names = chain((clean,), (f"{clean} {number}" for number in count(2)))
            free = key if clean == key else next(each for each in names if each not in value and each not in cleaned)
            cleaned[free] = self.value(inner, key)
        return cleaned

    def _find(self, text: str, begin: int = 0) -> list[Secret]:
        """Return the secrets from a character on, in order, none overlapping another; and remember them."""
        found: list[Secret] = []
        if not text:
            return found
        for secret in sorted([*find_secrets(text), *self.known.find(text)], key=lambda each: (each.start, -each.end)):
            is_apart = secret.start >= (found[-1].end if found else begin)
            if is_apart and text[secret.start : secret.end] not in self.kept:
                found.append(secret)
        for secret in found:
            self.kinds.setdefault(text[secret.start : secret.end], secret.kind)
        return found

    def _named(self, name: str, text: str) -> str:
        before = f"{name}: " if name else ""
        while before and (secrets := self._find(before + text, len(before))):
            text = with_placeholders(before + text, secrets)[len(before) :]
        return text

    def _across(self, chunks: Sequence[Chunk]) -> list[str]:
        texts = [chunk.text for chunk in chunks]
        whole, spans = _laid_out(chunks)
        secrets = self._find(whole)
        if not secrets:
            return texts
        for at, (begin, end) in enumerate(spans):
            inside = [
                Secret(secret.kind, max(secret.start, begin) - begin, min(secret.end, end) - begin)
                for secret in secrets
                if secret.start < end and secret.end > begin
            ]
            self.parts.update(texts[at][secret.start : secret.end] for secret in inside)
            texts[at] = with_placeholders(texts[at], inside)
        return texts


def needles_of(found: Iterable[str]) -> Needles:
    """Return what betrays secrets, or parts of them, in a file; those under eight bytes cannot be looked for."""
    collector = Collector()
    for secret in found:
        # Line by line: a page may have indented them. What frames a private key is no secret.
        lines = [line.strip() for line in secret.splitlines()]
        for line in [line for line in lines if is_disordered(line)] if len(lines) > 1 else lines:
            collector.add_content(line)
        collector.add_digest(query_hash(secret))
    return collector.needles()


def _is_word(character: str) -> bool:
    return character.isalnum()


def _laid_out(chunks: Sequence[Chunk]) -> tuple[str, list[tuple[int, int]]]:
    """Return the text that chunks were cut from, blank lines left out, and where each of them stands in it."""
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    end = 0
    for last, chunk in zip((None, *chunks), chunks, strict=False):
        shared = 0
        if last is not None and chunk.start_line > last.end_line:
            pieces.append("\n")
            end += 1
        elif last is not None:
            shared = _shared(last.text, chunk.text)
        pieces.append(chunk.text[shared:])
        begin, end = end - shared, end - shared + len(chunk.text)
        spans.append((begin, end))
    return "".join(pieces), spans


def _shared(before: str, after: str) -> int:
    """Return how many characters a text has at its end that the next one begins with."""
    first = after[:1]
    for start in range(max(0, len(before) - len(after)), len(before)):
        if before[start] == first and after.startswith(before[start:]):
            return len(before) - start
    return 0
