"""The benchmark of supersession: what is true, and a cut that is chosen on some and shown on others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.supersession import Judged, Reader, held_out, of_families, question_figures, run

from commonplace.errors import UsageError

TEXTS = (
    "The badger burrow is at Long Copse.",
    "Trumpet lessons begin on Thursdays.",
    "The badger burrow moved to Mill Lane now.",
)
NEITHER = np.zeros(4, np.bool_)


def test_of_each_memory_the_likeliest_newer_one_is_asked_about() -> None:
    """Of the first that is in vain, of the second right; the third has none; the last pair counts as neither."""
    values = np.array([[-1, 0.5, 0.4, 0], [-1, -1, 0.9, 0], [0, 0, -1, 0.1], [0, 0.8, 0, -1]], np.float32)
    true, left = np.zeros((2, 4, 4), np.bool_)
    true[0, 2] = true[1, 2] = left[3, 1] = True
    assert question_figures([Judged(values, true, left)] * 2) == {"overtaken": 4, "asked": 2, "in_vain_per_person": 1.0}


def test_the_cut_of_one_half_is_shown_on_the_other() -> None:
    """From .8 on all of the first are right, with .6 two of three; of the second's two true ones one is found.

    The third memory of the second is a turn of other talk, and one flag touches it.
    """
    low = -np.inf
    first = np.array([[low, 0.9, 0.6], [low, low, 0.8], [low, 0.1, low]], np.float32)
    second = np.array([[low, 0.95, 0.85], [0.7, low, low], [low, low, low]], np.float32)
    none = np.zeros((3, 3), np.bool_)
    chosen = Judged(first, (first > 0.7), none)
    rest = Judged(second, (np.abs(second - np.float32(0.8)) > 0.06) & (second > 0), none, turns=1)
    assert held_out([chosen], [rest]) == {"from": 0.8, "precision": 1.0, "recall": 0.5, "flags_per_100_turns": 100.0}
    assert held_out([Judged(first, none, none)], [rest])["recall"] == 0.0


def test_pairs_of_questions_and_of_the_file_are_true(tmp_path: Path) -> None:
    memories, questions, further, talk, mixed = (tmp_path / name for name in ("m", "q", "f", "t", "x"))
    rows = [
        {"user": user, "id": f"{user}{place}", "at": f"2026-01-0{place + 1}", "content": text, "origin": "user"}
        for user in "ab"
        for place, text in enumerate(TEXTS)
    ]
    memories.write_text("\n".join(map(json.dumps, rows)))
    question_figures = {"id": "q", "question": "Where is the burrow?", "style": "update"}
    each = [{**question_figures, "user": user, "relevant": [f"{user}2"], "stale": [f"{user}0"]} for user in "ab"]
    questions.write_text("\n".join(map(json.dumps, each)))
    further.write_text(json.dumps({"supersedes": [["a1", "a0", "why"]], "artefacts": [["a2", "a1", "no"]]}))
    talk.write_text("\n".join(json.dumps({"content": text}) for text in ("Figs are sweet.", "The cat sleeps.")))
    store = {"memories": rows[:3], "supersedes": [["a2", "a0", "why"]], "unclear": [], "chatter": []}
    mixed.write_text(json.dumps([store]))
    result = run(memories, questions, further=further, mixed=mixed)
    assert (result["people"], result["true_pairs"]) == (2, 3)
    assert [half["recall"] for half in result["halves"]] == [1.0, 0.5]
    beside = run(memories, questions, talk=talk)["beside_talk"]
    assert [half["flags_per_100_turns"] for half in beside] == [0.0, 0.0]
    assert result["mixed_asked"]["overtaken"] == 1
    assert result["mixed"]["recall"] == 1.0
    further.write_text("[]")
    with pytest.raises(UsageError, match="cannot be read"):
        run(memories, questions, further=further)


def test_families_count_what_is_taken_for_newer_and_what_is_only_near() -> None:
    families = "\n\n".join(
        [
            "o: The badger burrow is at Long Copse.\nn: The badger burrow moved to Mill Lane now.\nx: {N} likes soup.",
            "o: Trumpet lessons begin on Thursdays.\nq: {M} takes 5 mg.",
        ]
    )
    assert of_families(families, Reader()) == {
        "newer": {"statements": 1, "sure": 1, "asked": 1},
        "newer, of health, access or money": {"statements": 1, "sure": 0, "asked": 0},
        "near": {"statements": 1, "sure": 0, "asked": 0},
    }
