"""What is recalled comes out of a fence as it was shown in it, however that is quoted and whatever is around it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from commonplace.formats.escaping import visible
from commonplace.formats.fence import CLOSING, OPENING, FenceItem, fence, unfence

MARKS = [
    OPENING,
    CLOSING,
    "</recalled-item>",
    '<recalled-item ref="a" label="b">',
    "<",
    "\\",
    "/",
    "＜",
    "recalled",
    "Recalled",
    "-item",
    "\u200b",
    "\n",
    "\r",
    "\n\n",
    " ",
    "> ",
    "\t",
]
TEXTS = st.lists(st.sampled_from(MARKS) | st.text(max_size=4), max_size=12).map("".join)
ITEMS = st.lists(st.builds(FenceItem, TEXTS, TEXTS, TEXTS), min_size=1, max_size=4)
WORDS = st.text(st.sampled_from("abc </\\\n"), min_size=1, max_size=20)


@given(ITEMS)
def test_a_fence_gives_back_the_texts_of_its_items(items: list[FenceItem]) -> None:
    unfenced = unfence(fence(items))
    assert unfenced.text == ""
    assert unfenced.recalled == tuple(visible(item.text) for item in items)


@given(ITEMS, WORDS, WORDS)
def test_what_stands_around_a_fence_stays(items: list[FenceItem], before: str, after: str) -> None:
    unfenced = unfence(f"{before}\n{fence(items)}\n{after}")
    assert unfenced.recalled == tuple(visible(item.text) for item in items)
    assert unfenced.text.split() == f"{before}\n{after}".split()


@given(ITEMS, st.sampled_from(["> ", "  ", "\t", ">> "]))
def test_a_quoted_fence_gives_back_the_texts_of_its_items(items: list[FenceItem], prefix: str) -> None:
    quoted = "\n".join(prefix + line for line in fence(items).split("\n"))
    assert unfence(quoted).recalled == tuple(visible(item.text) for item in items)


@given(ITEMS)
def test_a_fence_within_a_fence_gives_back_the_fence(items: list[FenceItem]) -> None:
    """An agent may store what it was told, and be told it again."""
    nested = fence([FenceItem("r", fence(items), "l")])
    assert unfence(nested).recalled == (fence(items),)
    assert nested.count(OPENING) == nested.count(CLOSING) == 1


@given(TEXTS)
def test_any_text_keeps_its_words_where_nothing_was_recalled(text: str) -> None:
    unfenced = unfence(text)
    assert unfenced.recalled or unfenced.text == text
