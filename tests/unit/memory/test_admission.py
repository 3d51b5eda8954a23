"""What becomes of a text at the door: kept, joined with one that says the same, or refused."""

from __future__ import annotations

import pytest
from tests.unit.clock import START, Clock

from commonplace.engine import Engine
from commonplace.errors import AdmissionError, UsageError
from commonplace.formats.fence import FenceItem, fence
from commonplace.types import Document

DEPLOY = "The deploy to the staging cluster takes eleven minutes when the image cache is cold and four when it is warm."


def test_a_new_text_is_added_with_defaults_that_the_manual_names(book: Engine) -> None:
    memory = book.remember("The office is in Madrid")
    assert (memory.outcome, memory.tier, memory.status, memory.version) == ("added", "short", "active", 1)
    assert (memory.origin, memory.trust, memory.use_count, memory.strength) == ("agent", 0.8, 0, 1.0)
    assert memory.at == memory.created_at == memory.updated_at == memory.last_used == START
    assert (memory.retention, memory.expired_at, memory.notices) == (1.0, None, ())


@pytest.mark.parametrize(
    "again",
    [
        "The office is in Madrid",
        "  the office is in madrid. ",
        "“The office is in Madrid”",
        "The office  is\nin Madrid",
    ],
)
def test_the_same_words_touch_the_memory_that_is_there_and_say_so(book: Engine, clock: Clock, again: str) -> None:
    first = book.remember("The office is in Madrid")
    clock.move(days=1)
    second = book.remember(again)
    assert (second.id, second.outcome, second.use_count) == (first.id, "touched", 1)
    assert second.content == "The office is in Madrid"
    assert first.id in second.notices[0]
    assert len(book.list()) == 1


@pytest.mark.parametrize(
    "other",
    [
        "The office is not in Madrid",
        "The office is in Lisbon",
        "The office was in Madrid",
        "The office of Ada is in Madrid",
        "The office is in Madrid since 2019",
    ],
)
def test_a_word_that_matters_makes_another_memory(book: Engine, other: str) -> None:
    """To join them would lose what somebody knew."""
    book.remember("The office is in Madrid")
    assert book.remember(other).outcome == "added"
    assert len(book.list()) == 2


def test_a_memory_gains_what_its_twin_brings(book: Engine) -> None:
    """Tags, entities, a higher tier and trust belong to what was said, whoever said it first."""
    first = book.remember("The office is in Madrid", tags=["place"], origin="web")
    second = book.remember("the office is in Madrid", tags=["hq"], entities=["Madrid"], tier="long", origin="user")
    assert (second.id, second.outcome) == (first.id, "touched")
    assert (second.tags, second.entities, second.tier) == (("place", "hq"), ("Madrid",), "long")
    assert (second.origin, second.trust) == ("user", 1.0)
    assert [hit.owner_id for hit in book.recall("office", tags=["hq"], min_score=0).hits] == [first.id]


def test_force_keeps_a_text_twice_and_records_it(book: Engine) -> None:
    first = book.remember("The office is in Madrid")
    forced = book.remember("The office is in Madrid", force=True)
    assert forced.id != first.id
    assert (forced.is_forced, first.is_forced) == (True, False)


def test_turns_of_a_conversation_are_never_joined(book: Engine) -> None:
    """Thanks that were said twice were said twice."""
    turns = [{"content": "Thanks!", "session": "s", "id": str(number)} for number in range(3)]
    assert [memory.outcome for memory in book.remember_many(turns)] == ["added"] * 3
    assert [book.get(str(number)).position for number in range(3)] == [0, 1, 2]
    assert book.remember("Thanks!").outcome == "added"


def test_a_conversation_given_again_stays_as_it_is(book: Engine) -> None:
    turns = [{"content": f"Turn {number}", "session": "s", "id": str(number)} for number in range(3)]
    book.remember_many(turns)
    assert [memory.outcome for memory in book.remember_many(turns)] == ["unchanged"] * 3
    assert [book.get(str(number)).use_count for number in range(3)] == [0, 0, 0]


def test_a_known_id_with_other_words_is_the_next_version(book: Engine, clock: Clock) -> None:
    book.remember("The office is in Madrid", id="office")
    clock.move(days=1)
    second = book.remember("The office is in Lisbon", id="office")
    assert (second.outcome, second.version) == ("updated", 2)
    assert book.get("office", as_of=START).content == "The office is in Madrid"


def test_of_many_lines_of_one_form_the_one_with_the_same_numbers_is_touched(book: Engine) -> None:
    """Few are compared word by word; those with other numbers are none of them, however many came since."""
    line = "Build {} of the billing service failed on the staging cluster"
    first, *_ = book.remember_many([{"content": line.format(number)} for number in range(40)])
    again = book.remember(f"{line.format(0)}!".replace("of the billing", "of billing"))
    assert (again.id, again.outcome) == (first.id, "touched")


def test_a_known_id_keeps_what_is_not_given(book: Engine) -> None:
    """Who only has news of it cannot mean that nobody said it, or that its tags are gone."""
    fields = {"source": "Ada", "tags": ("hq",), "category": "fact", "metadata": {"floor": 3}, "entities": ("Madrid",)}
    book.remember("The office is in Madrid", "long", id="office", **fields)  # type: ignore[arg-type]
    lisbon = book.remember("The office is in Lisbon", id="office")
    assert (lisbon.outcome, lisbon.tier) == ("updated", "long")
    assert {name: getattr(lisbon, name) for name in fields} == fields
    assert [hit.owner_id for hit in book.recall("office", tags=["hq"], min_score=0).hits] == ["office"]
    assert book.remember("The office is in Lisbon", id="office", tags=["seat"]).tags == ("seat",)
    assert book.remember("The office is in Lisbon", id="office").outcome == "touched"
    assert book.remember("The office is in Porto", id="office", source="Ben").source == "Ben"


def test_text_of_an_indexed_document_is_recognised_by_its_name(book: Engine) -> None:
    book.index_documents([Document("runbook", f"# Deploys\n\n{DEPLOY}\n\nAsk Ada before you deploy on a Friday.")])
    with pytest.raises(AdmissionError, match="is text of runbook, which is stored already; say what is new"):
        book.remember(DEPLOY)
    assert book.list() == []
    assert book.remember(DEPLOY, force=True).is_forced
    assert book.remember("The deploy takes four minutes when the image cache is warm").outcome == "added"


def test_recalled_blocks_are_cut_out_and_nothing_but_recalled_is_refused(book: Engine) -> None:
    """An agent that stores its transcript would else remember its memories, again and again."""
    block = fence([FenceItem("memory 1", "The office is in Madrid", "2026-03-01")])
    kept = book.remember(f"I looked it up.\n\n{block}\n\nAda agreed to move.")
    assert "Madrid" not in kept.content
    assert "Ada agreed to move." in kept.content
    assert kept.notices == ("what was recalled from memory was skipped: 1 passage",)
    with pytest.raises(AdmissionError, match="nothing but what was recalled from memory"):
        book.remember(block)


def test_secrets_are_replaced_wherever_they_stand(book: Engine) -> None:
    token = "ghp_" + "4f9KzQ81mXv2Lr7Tn6Wb3Yc5Hd0Js8PaUeRg"
    kept = book.remember(
        f"the token is {token}", tags=[token], source=token, metadata={"env": {"TOKEN": [token]}}, entities=[token]
    )
    assert token not in str(kept.to_dict())
    assert kept.content == "the token is [redacted: github token]"
    assert kept.metadata == {"env": {"TOKEN": ["[redacted: github token]"]}}
    assert kept.notices == ("what looks like a secret was replaced: github token",)


def test_a_derived_memory_is_trusted_no_more_than_its_sources(book: Engine) -> None:
    web = book.remember("Some page says that the sky is green", origin="web")
    own = book.remember("I saw that the sky is blue", origin="user")
    derived = book.remember("There are two opinions about the sky", origin="user", derived_from=[web.id, own.id])
    assert derived.trust == 0.3


def test_all_of_a_list_is_checked_before_any_of_it_is_stored(book: Engine) -> None:
    with pytest.raises(UsageError, match="memory 2 of 3: the content is empty; none of them was stored"):
        book.remember_many([{"content": "one"}, {"content": "  \n"}, {"content": "three"}])
    assert book.list() == []


def test_what_was_said_in_a_session_is_no_twin_of_a_memory(book: Engine) -> None:
    """A turn of a conversation may be purged with it; the memory that repeats it must not go with the turn."""
    turn = book.remember("We bill in euros.", session="talk")
    kept = book.remember("We bill in euros.")
    assert (kept.outcome, kept.id != turn.id) == ("added", True)
