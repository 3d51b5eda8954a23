"""The graph in a real Chromium: merge, split, clusters, types of entities, lanes."""

from __future__ import annotations

import re

import httpx
from playwright.sync_api import Page, Route, expect
from tests.browser.conftest import GRAPH, press, settled, switch_on_edit

DRAWN = f"{GRAPH}.nodes().length"
VISIBLE = f"{GRAPH}.nodes().filter((each) => !each.hasClass('away')).map((each) => each.data('label')).sort()"
PEOPLE = {"namespace": "people"}


def test_entities_are_merged_by_mouse_and_split_by_keyboard(page: Page, server: httpx.Client) -> None:
    settled(page, "/graph?entity=Danielle&namespace=people")
    expect(page.locator("#detail h2")).to_have_text("Danielle")
    expect(page.locator("#merge")).to_be_hidden()
    switch_on_edit(page)
    expect(page.locator("#split")).to_be_visible()
    page.locator("#merge").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Search").fill("nobody of that name")
    expect(dialog).to_contain_text("No other has that name.")
    dialog.get_by_label("Search").fill("Dana")
    dana = dialog.get_by_role("radio", name=re.compile("^Dana "))
    dana.check()
    with page.expect_response("**/v1/graph/entities/search*"):
        dialog.get_by_label("Search").fill("Dana ")
    expect(dana).to_be_checked()
    dialog.get_by_label("Reason").fill("a short name")
    dialog.get_by_role("button", name="Merge").click()
    expect(page.locator("#message")).to_contain_text("Dana is Danielle now; 3 facts moved.")
    expect(page.locator("#detail")).to_contain_text("also Dana")
    expect(page.locator("#facts li:visible")).to_have_count(4)
    press(page, "Split…", "Enter")
    expect(dialog).to_be_visible()
    press(page, "Split", "Enter")
    expect(page.locator("#message")).to_contain_text("Split: Dana by itself again.")
    expect(page.locator("#facts li:visible")).to_have_count(1)
    assert server.get("/v1/graph/entities/Dana", params=PEOPLE).json()["merged_into"] == ""


def test_a_merge_that_is_refused_is_said_in_the_dialog(page: Page) -> None:
    settled(page, "/graph?entity=Acme&namespace=people")
    switch_on_edit(page)
    page.locator("#merge").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Search").fill("")
    expect(dialog).to_contain_text("No other has that name.")
    dialog.get_by_role("button", name="Merge").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Choose the one that is the same.")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.locator("#split").click()
    dialog.get_by_role("button", name="Split").click()
    expect(dialog.get_by_role("alert")).to_contain_text("nothing was merged into")
    assert page.get_by_role("dialog").count() == 1, "it stays open, for another choice"


def test_of_two_walks_the_last_one_is_shown(page: Page) -> None:
    held: list[Route] = []
    settled(page, "/graph?entity=Dana&namespace=people")
    page.route("**/neighbourhood?*", lambda route: route.continue_() if held else held.append(route))
    facts = page.locator("#facts")
    with page.expect_request("**/neighbourhood?*"):
        facts.get_by_role("button", name="→ Oslo").click()
    facts.get_by_role("button", name="→ Rome").click()
    expect(page.locator("#trail li")).to_have_text(["Dana", "Rome"])
    with page.expect_response("**/neighbourhood?*"):
        held[0].continue_()
    page.evaluate("new Promise((done) => setTimeout(done))")
    expect(page.locator("#trail li")).to_have_text(["Dana", "Rome"])
    expect(page.locator("#detail h2")).to_have_text("Rome")


def test_clusters_are_folded_above_forty_and_unfolded_by_mouse_and_keyboard(page: Page) -> None:
    settled(page, "/graph?entity=Centre&namespace=clusters")
    page.get_by_label("Steps").select_option("3")
    folded = page.locator("#folded button")
    expect(folded.first).to_be_visible()
    before = page.evaluate(DRAWN)
    assert before <= 40
    assert "and " in folded.first.inner_text()
    folded.first.focus()
    page.keyboard.press("Enter")
    between = page.evaluate(DRAWN)
    assert between > before
    assert (between, folded.count()) == (46, 0)
    settled(page, "/graph?entity=Centre&namespace=clusters")
    page.get_by_label("Steps").select_option("3")
    expect(folded).to_have_count(1)
    page.evaluate(f"void {GRAPH}.nodes('.folded').first().emit('tap')")
    expect(folded).to_have_count(0)


def test_a_type_of_entities_is_hidden_with_its_facts(page: Page) -> None:
    settled(page, "/graph?entity=Dana&namespace=people")
    kinds = page.locator("#kinds")
    expect(kinds.locator(".swatch")).to_have_count(kinds.get_by_role("checkbox").count())
    assert "Rome" in page.evaluate(VISIBLE)
    kinds.get_by_role("checkbox", name="place").uncheck()
    assert page.evaluate(VISIBLE) == ["Dana", "Lathe"]
    expect(page.locator("#facts li:visible")).to_have_count(1)
    kinds.get_by_role("checkbox", name="place").check()
    assert "Rome" in page.evaluate(VISIBLE)


def test_lanes_hold_what_follows_each_other_and_lead_to_the_sentence(page: Page) -> None:
    settled(page, "/graph?entity=Dana&namespace=people")
    lanes = page.locator("#lanes .lane:not([aria-hidden])")
    expect(lanes).to_have_count(2)
    lived = lanes.filter(has_text="lives in")
    expect(lived.get_by_role("button")).to_have_text(["Oslo", "Rome"])
    expect(lived.get_by_role("button", name="lives in Oslo, ended")).to_have_class("ended")
    lived.get_by_role("button", name="lives in Rome, open").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#detail h2")).to_contain_text("Rome")
    line = page.locator("#lanes .at")
    assert line.evaluate("(each) => each.style.insetInlineStart") == "100%"
    page.get_by_label("Time", exact=True).fill("500")
    assert line.evaluate("(each) => each.style.insetInlineStart") == "50%"
