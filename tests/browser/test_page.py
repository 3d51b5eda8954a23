"""The page in a real Chromium: every page, by mouse and by keyboard, and with texts that try to break out of it."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, Route, ViewportSize, expect
from tests.browser.conftest import BILLING, CORRECTED, GRAPH, ROWS, press, settled, switch_on_edit
from tests.hostile import HOSTILE

from commonplace.server.access import PageSession

PAGES = {
    "/": ("#newest li", 8),
    "/memories": (f"#table[aria-rowcount='{len(HOSTILE) + 2}']", 1),
    "/memory?id=billing": ("#versions > ol > li", 2),
    "/memory?id=gone": ("#memory .error", 1),
    "/recall?query=database+for+billing": ("#hits > li", 21),
    "/graph?entity=Mia": ("#facts li", 4),
    "/review": (".item", 1),
    "/runs": ("#runs p", 1),
    "/context?task=database": ("#context pre", 1),
    "/store": ("#doctor p", 2),
    "/graph?namespace=hostile&entity=Acme": ("#facts li", 10),
    "/review?namespace=hostile": (".item", 6),
}
"""Each page with a part of it and how many of it are there once all is filled."""
SMALL: dict[str, ViewportSize] = {"viewport": {"width": 375, "height": 700}}
DARK = {"viewport": {"width": 1200, "height": 800}, "color_scheme": "dark"}


@pytest.mark.parametrize("page", [SMALL, DARK], indirect=True, ids=["small", "dark"])
def test_every_page_fits_and_no_text_becomes_markup(page: Page) -> None:
    for path, (part, count) in PAGES.items():
        settled(page, path)
        assert (path, page.locator(part).count()) == (path, count)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert page.evaluate("window.owned") is None, path
        assert page.locator("main img, main iframe, main style, main base, main script").count() == 0, path
        assert unreadable(page) == [], path
    for number, text in enumerate(HOSTILE):
        if number % 4 == 0 or "<" not in text:
            settled(page, f"/memory?id=hostile{number}")
            assert page.evaluate("window.owned") is None
            shown = page.locator("article.memory").inner_text()
            assert shown.startswith("boat ")
            assert not re.findall("[\x00-\x08\u200b\u202a-\u202e\ufeff]", shown)


def unreadable(page: Page) -> list[str]:
    """Return the texts whose contrast with what lies behind them is below 4.5 to 1."""
    found: list[str] = page.evaluate(CONTRAST)
    return found


CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
    if (!own || element.disabled || !element.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) found.push(element.outerHTML.slice(0, 120));
  }
  return found;
}"""


def test_what_is_to_come_is_not_the_newest(page: Page) -> None:
    settled(page, "/?namespace=wide")
    expect(page.locator("#newest li")).to_have_count(8)
    expect(page.locator("#newest")).not_to_contain_text("treaty")
    page.set_viewport_size(SMALL["viewport"])
    settled(page, "/memories?namespace=wide")
    label = page.locator("td[data-label=Uses]").first.evaluate("(cell) => getComputedStyle(cell, '::before').content")
    assert "Uses" in label


def test_home_shows_the_newest_and_leads_to_an_answer_of_an_earlier_time(page: Page) -> None:
    settled(page, "/")
    expect(page.locator("#newest li").first).to_contain_text("boat")
    page.get_by_label("What do you want to find?").fill("database for billing")
    page.get_by_label("As of").fill("0")
    page.get_by_role("button", name="Recall").click()
    page.wait_for_url("**/recall?*as_of=2023-*")
    expect(page.locator("#hits .text").first).to_have_text(BILLING)
    assert CORRECTED not in page.locator("#hits").inner_text()


def test_memories_are_filtered_and_a_filter_can_be_linked_to(page: Page) -> None:
    settled(page, "/memories")
    expect(page.locator("#total")).to_have_text(str(len(HOSTILE) + 1))
    page.get_by_role("checkbox", name="decision").check()
    expect(page.locator(ROWS)).to_have_count(1)
    assert page.url.endswith("?categories=decision")
    page.reload()
    expect(page.get_by_role("checkbox", name="decision")).to_be_checked()
    page.get_by_role("link", name=CORRECTED).click()
    expect(page.locator("#versions del")).to_contain_text(["Postgres."])
    expect(page.locator("#versions ins").first).to_contain_text("SQLite,")


def test_memory_is_read_as_it_was_known_at_an_earlier_time(page: Page) -> None:
    settled(page, "/memory?id=billing")
    article, slider = page.locator("article.memory"), page.get_by_label("As of")
    expect(article).to_have_text(CORRECTED)
    slider.fill("0")
    expect(article).to_have_text(BILLING)
    assert "Version 1, as it was known then." in page.locator("#memory").inner_text()
    assert page.locator("#forget").count() == 0, "what is past is only read"
    page.reload()
    expect(article).to_have_text(BILLING)
    slider.fill("1000")
    expect(article).to_have_text(CORRECTED)
    assert page.url.endswith("/memory?id=billing")


def test_a_memory_is_corrected_and_forgotten_by_keyboard_alone(
    page: Page, server: httpx.Client, session: PageSession
) -> None:
    session.is_editing = True
    server.post("/v1/memories", json={"content": "The kettle is blue", "id": "kettle"})
    session.is_editing = False
    settled(page, "/memory?id=kettle")
    expect(page.locator("#change")).to_be_hidden()
    press(page, "Edit", "Space")
    expect(page.locator("#change")).to_be_visible()
    press(page, "Edit…", "Enter")
    expect(page.get_by_role("dialog").get_by_label("Text", exact=True)).to_be_focused()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("The kettle is green")
    press(page, "Save", "Enter")
    expect(page.locator("article.memory")).to_have_text("The kettle is green")
    expect(page.locator("#versions > ol > li")).to_have_count(2)
    press(page, "Forget…", "Enter")
    expect(page.get_by_role("button", name="Keep")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    press(page, "Forget…", "Enter")
    press(page, "Forget", "Enter")
    expect(page.locator(".receipt")).to_contain_text("Verified")
    expect(page.locator(".receipt summary")).to_contain_text("files searched")
    expect(page.get_by_role("button", name="Close", exact=True).last).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories")
    assert server.get("/v1/memories/kettle").status_code == 404


def test_recall_draws_the_floor_and_says_why(page: Page) -> None:
    settled(page, "/recall?query=database+for+billing&limit=3")
    expect(page.locator("#hits .text").first).to_have_text(CORRECTED)
    expect(page.locator("#hits mark").first).to_have_text("database")
    expect(page.locator("#floor")).to_contain_text("The floor")
    expect(page.locator("#hits > li.below").first).to_be_visible()
    page.locator("#hits > li.below summary").first.click()
    expect(page.locator("#hits > li.below details").first).to_contain_text("Words that matched")
    page.get_by_role("button", name="Copy as command").click()
    expect(page.locator("#message")).to_contain_text("commonplace search --limit 3 --kind memory --store '")
    page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject())")
    page.get_by_role("button", name="Copy as command").click()
    expect(page.locator("#message")).to_contain_text("does not allow copying")
    page.locator("[name=kinds]").select_option("everything")
    page.wait_for_url("**kinds=all")
    settled(page, page.url)
    expect(page.locator("[name=kinds]")).to_have_value("all")
    settled(page, "/recall?query=What+is+the+boiling+point+of+tungsten?&limit=50")
    expect(page.locator("#summary")).to_contain_text("No result above the floor.")
    expect(page.locator("#floor")).to_contain_text("below it, the best at 0.")
    assert page.locator("#hits > li.below").count() > 0


def test_the_graph_is_walked_by_clicks_and_through_time(page: Page) -> None:
    settled(page, "/graph")
    expect(page.locator("#start button").first).to_be_visible()
    page.get_by_label("Person, place, thing").fill("Mia")
    page.keyboard.press("Enter")
    page.locator("#found").get_by_role("button", name="Mia").click()
    expect(page.locator("#facts li:visible")).to_have_count(4)
    assert edges(page, "disputed") == ["Zoe Acme", "Zoe Globex"]
    assert edges(page, "ended") == ["Mia Acme"]
    page.get_by_label("Time", exact=True).fill("100")
    expect(page.locator("#facts li:visible")).to_have_count(3)
    assert edges(page, "ended") == []
    assert edges(page, "away") == ["Mia Globex"]
    page.get_by_role("button", name="Play").click()
    expect(page.locator("#facts li:visible")).to_have_count(4)
    expect(page.locator("#moment-shown")).to_have_text("all times until now")
    page.locator("#types").get_by_label("works for").uncheck()
    assert len(edges(page, "away")) == 4
    page.locator("#types").get_by_label("works for").check()
    # Where a mouse meets a node depends on when the browser tells of having scrolled.
    page.evaluate(f"void {GRAPH}.nodes('[label=\"Acme\"]').emit('tap')")
    expect(page.locator("#trail li")).to_have_text(["Mia", "Acme"])
    page.get_by_role("button", name="Mia works at Acme.").click()
    expect(page.locator("#detail")).to_contain_text("Said in")
    page.locator("#trail").get_by_role("button", name="Mia").click()
    expect(page.locator("#trail li")).to_have_text(["Mia"])


def test_facts_of_entities_that_are_drawn_as_one_are_all_reached(page: Page) -> None:
    settled(page, "/graph?entity=Hub&namespace=wide")
    assert page.evaluate(f"{GRAPH}.edges().map((each) => each.data('label'))") == ["46 facts"]
    page.evaluate(f"void {GRAPH}.edges().emit('tap')")
    expect(page.locator("#detail li")).to_have_count(46)
    expect(page.locator("#lanes")).to_contain_text("and 6 more")
    page.evaluate(f"void {GRAPH}.nodes('.folded').emit('tap')")
    assert page.evaluate(f"{GRAPH}.edges().length") == 46


def test_a_walk_that_fails_leaves_the_path_as_it_was(page: Page) -> None:
    settled(page, "/graph?entity=Mia")
    page.route("**/neighbourhood?*", lambda route: route.abort())
    page.locator("#facts").get_by_role("button", name="→ Acme").first.click()
    expect(page.locator("#message")).to_contain_text("The server does not answer.")
    expect(page.locator("#message")).to_be_in_viewport()
    expect(page.locator("#trail li")).to_have_text(["Mia"])
    assert "entity=Mia" in page.url


NAMES = "(each) => `${each.source().data('label')} ${each.target().data('label')}`"


def edges(page: Page, state: str) -> list[str]:
    """Return which edges are drawn in a way."""
    found: list[str] = page.evaluate(f"{GRAPH}.edges('.{state}').map({NAMES}).sort()")
    return found


def test_a_contradiction_is_settled_and_the_other_fact_is_grey_from_then_on(page: Page) -> None:
    settled(page, "/graph?entity=Zoe&namespace=settle")
    switch_on_edit(page)
    expect(page.locator("#facts li.disputed")).to_have_count(2)
    page.get_by_role("button", name="Zoe works for Globex").click()
    page.locator("#settle").click()
    expect(page.locator("#message")).to_contain_text("Settled: 0 ended, 1 retracted.")
    assert edges(page, "ended") == ["Zoe Acme"]
    assert edges(page, "disputed") == []


def test_what_waits_is_decided_one_at_a_time(page: Page, server: httpx.Client) -> None:
    def waits() -> list[str]:
        found = server.get("/v1/questions", params={"namespace": "review"}).json()["questions"]
        return [each["kind"] for each in found]

    settled(page, "/?namespace=review")
    expect(page.locator("#waiting li")).to_have_count(4)
    settled(page, "/review?namespace=review")
    expect(page.locator("#count")).to_have_text("4 to decide")
    expect(page.locator(".item").first).to_be_focused()
    page.keyboard.press("1")
    expect(page.get_by_role("alert")).to_contain_text("Switch on Edit")
    switch_on_edit(page)
    page.keyboard.press("1")
    page.locator(".item").first.focus()
    page.keyboard.press("j")
    expect(page.locator(".item").nth(1)).to_be_focused()
    for _ in range(3):
        page.keyboard.down("2")
    expect(page.locator("#count")).to_have_text("3 to decide")
    page.keyboard.down("2")
    expect(page.locator(".item").nth(1)).to_be_focused()
    assert waits() == ["contradiction", "ending", "merge"]
    page.keyboard.up("2")
    ending = page.locator(".item", has_text="no longer unlock")
    expect(ending.locator(".side-card")).to_have_count(2)
    ending.get_by_role("button", name="It has ended (2)").click()
    expect(page.locator("#count")).to_have_text("2 to decide")
    page.locator(".item").first.focus()
    page.keyboard.press("b")
    expect(page.locator("#count")).to_have_text("1 to decide")
    page.keyboard.press("e")
    page.get_by_role("dialog").get_by_label("Text").fill(" ")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("edit needs the text that is right")
    page.get_by_role("dialog").get_by_label("Text").fill("A piano is on the second floor")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#queue")).to_have_text("Nothing waits for you.")
    assert waits() == []
    kept = server.get("/v1/memories", params={"namespace": "review"}).json()["memories"]
    assert [each["content"] for each in kept] == ["A piano is on the second floor"]


def test_what_waits_beyond_the_first_page_is_seen_before_it_is_decided(page: Page) -> None:
    settled(page, "/review?namespace=many")
    expect(page.locator(".item")).to_have_count(20)
    for _ in range(20):
        page.keyboard.press("j")
    expect(page.locator(".item")).to_have_count(2)
    expect(page.locator(".item").first).to_be_focused()
    expect(page.locator(".item .side-card")).to_have_count(2)
    expect(page.locator("#paging")).to_contain_text("21–22")
    assert len(set(page.locator(".item .side-card").all_inner_texts())) == 2


def test_a_run_is_rehearsed_done_and_undone(page: Page, server: httpx.Client) -> None:
    def status() -> str:
        found: str = server.get("/v1/memories/harbour?namespace=work&touch=false").json()["status"]
        return found

    settled(page, "/runs?namespace=work")
    expect(page.locator("#run")).to_be_hidden()
    switch_on_edit(page)
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#report h2")).to_have_text("Dry run: a run would do this")
    expect(page.locator("#report li")).to_have_text("The harbour of Aegina froze over retention 0 %: archived")
    assert status() == "active"
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#runs > ol > li")).to_contain_text(["1 change"])
    assert status() == "archived"
    page.get_by_text("Changes", exact=True).click()
    expect(page.locator("#runs .counters tbody tr")).to_have_count(2)
    counted = [each.split() for each in page.locator("#runs .counters tr").all_inner_texts()]
    assert counted == [["short", "archived", "links"], ["before", "1", "0", "0"], ["after", "0", "1", "0"]]
    expect(page.locator("#runs .acts del")).to_have_text("The harbour of Aegina froze over")
    page.get_by_role("button", name="Undo this").click()
    expect(page.locator("#runs > ol > li")).to_contain_text(["1 undone"])
    assert status() == "active"


def test_context_and_store_show_what_agents_read_and_how_the_store_is(page: Page) -> None:
    settled(page, "/context?task=database+for+billing")
    expect(page.locator("#context pre")).to_contain_text(CORRECTED)
    expect(page.locator("#injection")).not_to_be_empty()
    settled(page, "/store")
    expect(page.locator("#doctor")).to_contain_text("No problem.")
    expect(page.locator("#backups")).to_contain_text("None yet.")
    page.get_by_label("Find").fill("half_life")
    expect(page.locator("#settings tbody tr:visible")).to_have_count(4)
    assert all("half_life" in row for row in page.locator("#settings tbody tr:visible").all_inner_texts())


def test_what_health_finds_names_the_memories_and_leads_to_review(page: Page) -> None:
    def overtaken(route: Route) -> None:
        health = route.fetch().json()
        command = "commonplace review"
        health["findings"].append({"kind": "overtaken", "ids": ["billing", "lost"], "why": "old", "command": command})
        route.fulfill(json=health)

    page.route("**/v1/health*", overtaken)
    settled(page, "/store")
    contradiction, found = page.locator("#health li").nth(0), page.locator("#health li").nth(1)
    assert contradiction.get_by_role("link").all_inner_texts() == ["Review"]
    assert found.get_by_role("link").all_inner_texts() == [CORRECTED, "lost", "Review"]


def test_a_large_store_says_what_was_left_out_and_is_examined_when_somebody_asks(page: Page) -> None:
    def large(route: Route) -> None:
        index = route.fetch().json()
        index["counts"]["memories"] = 2_001
        problem = {"path": "a.md", "reason": "<b>odd</b>"}
        index["left_out"] = [{"root": "/notes", "skipped": {"secret": 3}, "problems": [problem]}]
        route.fulfill(json=index)

    page.route("**/v1/index*", large)
    settled(page, "/store")
    expect(page.locator("#index")).to_contain_text("Left out of /notes")
    expect(page.locator("#index")).to_contain_text("<b>odd</b>")
    for part in ("#health", "#doctor"):
        expect(page.locator(part)).to_have_text("Examine 2001 memories")
        page.locator(part).get_by_role("button").click()
    expect(page.locator("#health dl")).to_have_count(1)
    expect(page.locator("#doctor")).to_contain_text("No problem.")
    assert page.locator("#index b").all_inner_texts() == [], "a reason is text, not markup"


def test_what_another_has_changed_meanwhile_is_said_and_nothing_written_is_lost(
    page: Page, server: httpx.Client, session: PageSession
) -> None:
    session.is_editing = True
    tags = ["blue, not green", "roof"]
    own = {"namespace": "shed"}
    server.post("/v1/memories", json={"content": "The shed is blue", "id": "shed", "tags": tags}, params=own)
    settled(page, "/memory?id=shed&namespace=shed")
    page.locator("#change").click()
    expect(page.get_by_label("Tags")).to_have_value("\n".join(tags))
    server.patch("/v1/memories/shed", json={"content": "The shed is red"}, params=own)
    page.get_by_label("Text", exact=True).fill("The shed is green")
    page.locator("#edit-save").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("The shed is red")
    expect(dialog.get_by_label("Text", exact=True)).to_have_value("The shed is green")
    page.locator("#edit-save").click()
    expect(page.locator("article.memory")).to_have_text("The shed is green")
    expect(dialog).to_be_hidden()
    found = server.get("/v1/memories/shed", params=own).json()
    assert (found["version"], sorted(found["tags"])) == (3, tags)


def test_a_page_is_saved_as_one_file_that_opens_by_itself(page: Page, tmp_path: Path) -> None:
    settled(page, "/memory?id=billing")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save").click()
    file = tmp_path / "saved.html"
    download.value.save_as(file)
    text = file.read_text()
    assert "csrf" not in text
    assert "<script" not in text
    assert not re.findall(r"""(?:href|src|action)=["'](?!data:)""", text)
    page.goto(file.as_uri())
    expect(page.locator("article.memory")).to_have_text(CORRECTED)


def test_a_saved_graph_is_drawn_and_its_choices_are_kept(page: Page, tmp_path: Path) -> None:
    settled(page, "/graph?entity=Mia")
    page.locator("#types").get_by_label("works for").uncheck()
    page.get_by_label("Steps").select_option("3")
    expect(page.get_by_label("Steps")).to_have_value("3")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save").click()
    file = tmp_path / "graph.html"
    download.value.save_as(file)
    page.goto(file.as_uri())
    expect(page.locator("img.canvas")).to_have_count(3)
    boxes = page.evaluate("[...document.querySelectorAll('img.canvas')].map((each) => each.getBoundingClientRect().y)")
    assert len(set(boxes)) == 1
    expect(page.locator("#types").get_by_label("works for")).not_to_be_checked()
    expect(page.get_by_label("Steps")).to_have_value("3")


def test_the_theme_is_switched_and_kept(page: Page) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    page.get_by_role("button", name="Light or dark").click()
    after = page.evaluate(colour)
    page.reload()
    assert before != after == page.evaluate(colour)
