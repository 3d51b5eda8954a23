"""A Chromium that has opened the page, and a store with something for every part of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, expect, sync_playwright
from scripts.fetch_browser import find_browser
from tests.hostile import HOSTILE
from tests.serving import serving

import commonplace
from commonplace.server.access import CSRF_HEADER, PageSession

BILLING = "The database for billing is Postgres."
CORRECTED = "The database for billing is SQLite, since it needs no server."
ROWS = "#table tbody tr:not(.spacer)"
NO_BROWSER = (
    "no browser: name a Chromium in COMMONPLACE_TEST_BROWSER, install `chromium`, or let "
    "`python scripts/fetch_browser.py` fetch one from npm"
)
TIMEOUT_MS = 60_000
GRAPH = "document.getElementById('canvas')._cyreg.cy"
FLAGS = ("--no-sandbox", "--disable-dev-shm-usage")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for this module alone: as long as it is there, an event loop runs in the main thread."""
    path = find_browser()
    if path is None:
        pytest.fail(NO_BROWSER)
    expect.set_options(TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def session() -> PageSession:
    return PageSession()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a memory of two versions, hostile texts wherever a text may stand, and facts that contradict.

    What a test changes is in a namespace, or in a memory, of its own: workers run the tests in any order.
    """
    store = tmp_path_factory.mktemp("page") / "store"
    with commonplace.open(store, embedder="hashing", clock=lambda: 1_700_000_000.0) as book:
        book.remember(BILLING, id="billing", tags=["billing"], category="decision", source="meeting")
        book.graph.add_episode("Mia works at Acme.", reference_time="2024-01-05")
        book.graph.add_episode("Mia works at Globex.", reference_time="2025-03-05")
        book.graph.add_triplet("Zoe", "WORKS_FOR", "Acme")
        book.graph.add_triplet("Zoe", "WORKS_FOR", "Globex")
    with commonplace.open(store, "work", embedder="hashing", clock=lambda: 1_700_000_000.0) as book:
        book.remember("The harbour of Aegina froze over", id="harbour")
    with commonplace.open(store, "settle", embedder="hashing", clock=lambda: 1_700_000_000.0) as book:
        for place in ("Acme", "Globex"):
            book.graph.add_triplet("Zoe", "WORKS_FOR", place)
    for namespace in ("review", "later", "played"):
        with commonplace.open(store, namespace, embedder="hashing", clock=lambda: 1_700_000_000.0) as book:
            for name in ("Ada", "Bob"):
                for place in ("Acme", "Globex"):
                    book.graph.add_triplet(name, "WORKS_FOR", place)
    with commonplace.open(store, "review", embedder="hashing", clock=lambda: 1_750_000_000.0) as book:
        book.graph.add_episode("Alex can unlock the server room.", reference_time="2026-01-10")
        book.graph.add_episode("Alex can no longer unlock the server room.", reference_time="2026-02-20")
        book.remember("The office has a piano on the second floor", id="one")
        book.remember("On the second floor of the office stands a piano", id="two", force=True)
        book.ledger.create("merge", ["one", "two"], "merge")
    with commonplace.open(store, "many", embedder="hashing", clock=lambda: 1_700_000_000.0) as book:
        for number in range(22):
            book.remember(f"Ship {number} left harbour {number * 7}", id=f"ship{number}", force=True)
            book.ledger.create("decay", [f"ship{number}"], "archive")
    with commonplace.open(store, "wide", embedder="hashing", clock=lambda: 1_700_000_000.0) as book:
        for number in range(45):
            book.graph.add_triplet("Hub", "RELATED_TO", f"Leaf {number}")
        book.graph.add_triplet("Hub", "USES", "Leaf 0")
        book.remember_many([{"content": f"Ship {each}", "id": f"ship{each}"} for each in range(51)], force=True)
        book.remember("The treaty ends", at="2035-01-01")
    with commonplace.open(store, "long", embedder="hashing", clock=lambda: 1_700_000_000.0) as book:
        whales = [{"content": f"Whale {each} was seen", "id": f"{each:04}"} for each in range(1_500)]
        book.remember_many(whales, force=True)
    with commonplace.open(store, "used", embedder="hashing", clock=lambda: 1_700_000_000.0) as book:
        book.remember("The anchor weighs nine tons", id="anchor")
        book.log_retrieval(book.recall("how heavy is the anchor"), "recall")
        book.sync()
    with commonplace.open(store, "used", embedder="hashing", clock=lambda: 1_700_500_000.0) as book:
        book.touch("anchor")
    fill_graphs(store)
    with commonplace.open(store, "hostile", embedder="hashing", clock=lambda: 1_700_000_000.0) as book:
        for text in HOSTILE[:6]:
            for place in ("Acme", "Globex"):
                book.graph.add_triplet(text, "WORKS_FOR", place, fact=f"{text} works at {place}")
        book.remember(HOSTILE[0], id="script", force=True)
        book.ledger.create("decay", ["script"], "archive")
    with commonplace.open(store, embedder="hashing", clock=lambda: 1_750_000_000.0) as book:
        book.update("billing", CORRECTED)
        hostile = [
            {"content": f"boat {text} database", "id": f"hostile{number}", "source": bare, "session": bare}
            | ({} if number % 4 else {"tags": [bare]})
            for number, (text, bare) in enumerate((text, text.replace("\0", "")) for text in HOSTILE)
        ]
        book.remember_many(hostile, force=True)
    return store


def fill_graphs(store: Path) -> None:
    """Add what is merged, split and folded."""
    with commonplace.open(store, "people", embedder="hashing", clock=lambda: 1_700_000_000.0) as book:
        book.graph.add_triplet("Danielle", "WORKS_FOR", "Acme")
        book.graph.add_triplet("Dana", "USES", "Lathe", fact="Dana uses the lathe")
        book.graph.add_triplet("Dana", "LIVES_IN", "Oslo", valid_from="2021-01-01", valid_to="2022-01-01")
        book.graph.add_triplet("Dana", "LIVES_IN", "Rome", valid_from="2022-01-01")
    with commonplace.open(store, "clusters", embedder="hashing", clock=lambda: 1_700_000_000.0) as book:
        for club in "ABC":
            names = [f"{club}{number}" for number in range(15)]
            for number, name in enumerate(names):
                for step in (1, 2, 4):
                    book.graph.add_triplet(name, "RELATED_TO", names[(number + step) % 15])
            book.graph.add_triplet("Centre", "USES", names[0])


@pytest.fixture(scope="module")
def server(filled: Path, session: PageSession) -> Iterator[httpx.Client]:
    with serving(filled, page=session) as client:
        client.get(session.path)
        client.headers[CSRF_HEADER] = session.csrf
        yield client


@pytest.fixture
def page(
    request: pytest.FixtureRequest, browser: Browser, server: httpx.Client, session: PageSession
) -> Iterator[Page]:
    """A page that has opened the link; a script that fails or is forbidden, or a dialog, fails the test."""
    wrong: list[str] = []
    session.is_editing = False
    where = {"base_url": str(server.base_url), "timezone_id": "UTC", "locale": "en-US"}
    context = browser.new_context(**{**where, **getattr(request, "param", {})})
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()

    def refuse(dialog: Dialog) -> None:
        wrong.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("dialog", refuse)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if _is_wrong(message) else None)
    page.goto(session.path)
    page.wait_for_url("**/")
    yield page
    page.close()
    context.close()
    assert wrong == []


def _is_wrong(message: ConsoleMessage) -> bool:
    """Whether a message is of a script or a policy; a status that the page says itself is none."""
    return message.type == "error" and not message.text.startswith("Failed to load resource")


def settled(page: Page, path: str) -> None:
    """Go to a page, and wait until all parts of it are filled."""
    page.goto(path)
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def switch_on_edit(page: Page) -> None:
    """Switch Edit on by the mouse, and wait until it is: what changes something is shown, and does it, only then."""
    page.get_by_role("switch", name="Edit").click()
    expect(page.get_by_role("switch", name="Edit")).to_be_checked()


def press(page: Page, name: str, key: str) -> None:
    """Walk by Tab to a button or switch, and press a key on it."""
    for _ in range(80):
        focused = page.evaluate("[document.activeElement.textContent, document.activeElement.tagName]")
        if focused == [name, "BUTTON"]:
            page.keyboard.press(key)
            if name == "Edit":
                expect(page.get_by_role("switch", name="Edit")).to_be_checked()
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {name}")
