import { address, attempt, byId, day, dialog, doing, el, fill, get, isEditing, nothing, part, post, quiet, section, sending, tag, tell } from "./page.js";

const SHOWN = 20;
const KEYS = { left: "1", right: "2", both: "b", edit: "e", accept: "y", reject: "n" };
const ALSO = { ArrowLeft: "1", ArrowRight: "2", a: "y", x: "n" };
const LATER = "later";
const WORDS = {
  contradiction: { left: "This one is right", right: "This one is right", both: "Both are right", edit: "Neither, write it…" },
  overtaken: { left: "The older one still holds", right: "The newer one holds", both: "Both hold", edit: "Neither, write it…" },
  ending: { left: "It still holds", right: "It has ended" },
  merge: { left: "Keep this one", right: "Keep this one", both: "Keep both", edit: "Rewrite…", accept: "Merge them" },
  proposal: { accept: "Do it", reject: "Do not" },
};
let items = [];
let current = 0;
let isBusy = false;

/** The answer that a key gives to a question; a further side is named by its id. */
function meant(item, key) {
  const answer = Object.keys(KEYS).find((each) => KEYS[each] === key && item.answers.includes(each));
  return answer ?? (/^[3-9]$/.test(key) && item.answers.includes("left") ? item.sides[key - 1]?.id : undefined);
}

function button(item, key) {
  const answer = meant(item, key);
  return answer ? doing(`${WORDS[item.kind][answer] ?? WORDS[item.kind].left} (${key})`, () => decide(item, answer)) : null;
}

function sideCard(item, side, place) {
  const isFact = item.kind === "contradiction" || item.kind === "ending";
  return el("article", { class: "side-card" }, el("p", { dir: "auto" }, side.text.slice(0, 800)),
    el("p", {}, quiet(el("span", { dir: "auto" }, side.source), side.source ? ", " : "", day(side.at) || "no date", `, trusted ${side.trust.toFixed(2)}`)),
    button(item, String(place + 1)), " ", side.id && !isFact ? el("a", { href: address("/memory", { id: side.id }) }, "Open") : null);
}

function seen(item) {
  return el("button", { type: "button", class: "plain", click: () => attempt(async () => {
    const fact = await get(`/graph/facts/${part(item.sides[0].id)}`);
    location.assign(address("/graph", { entity: fact.source_node_uuid }));
  }) }, "See it in the graph");
}

function itemOf(item, place) {
  return el("section", { class: "item", tabindex: -1, focusin: () => mark(place) }, el("h2", { dir: "auto" }, item.question), el("p", {}, tag(item.kind), quiet("since ", day(item.since), item.why ? [": ", el("span", { dir: "auto", class: "why" }, item.why)] : null)),
    el("div", { class: "sides" }, item.sides.map((side, number) => sideCard(item, side, number))),
    el("p", {}, ["both", "edit", "accept", "reject"].map((each) => (item.answers.includes(each) ? [button(item, KEYS[each]), " "] : null)),
      el("button", { type: "button", click: () => putOff(item) }, "Later (l)"), " ", ["contradiction", "ending"].includes(item.kind) ? seen(item) : null));
}

/** Do what was decided, one thing at a time. */
async function decide(item, answer) {
  if (isBusy) return;
  isBusy = true;
  try {
    const work = `/questions/${part(item.id)}/answer`;
    if (answer === "edit") {
      const text = el("textarea", { id: "edit-content", rows: 6, dir: "auto", autofocus: true });
      text.value = item.sides[0].text;
      if (!await dialog("What is right?", sending([el("label", {}, "Text", text)], () => post(work, { answer, text: text.value })))) return;
    } else await post(work, { answer });
    await show();
    tell("Settled.");
  } finally {
    isBusy = false;
  }
}

/** The questions beside the current one; where focus was lost with what was there, it goes to the current one. */
function draw() {
  const first = current - (current % SHOWN), last = Math.min(first + SHOWN, items.length);
  const turn = (text, place) => el("button", { type: "button", click: () => move(place) }, text);
  fill(byId("count"), items.length ? `${items.length} to decide` : "");
  fill(byId("queue"), items.length ? items.slice(first, last).map((item, place) => itemOf(item, first + place)) : nothing("Nothing waits for you."));
  fill(byId("paging"), items.length > SHOWN ? quiet(`${first + 1}–${last}`) : null, first ? turn("Previous", first - 1) : null, last < items.length ? turn("Next", last) : null);
  mark(current);
  if (document.activeElement === document.body) (byId("queue").children[current % SHOWN] ?? byId("main")).focus();
}

const putOffIds = () => JSON.parse(sessionStorage.getItem(LATER) ?? "[]");

/** Let a question wait behind all others, as long as the tab is open. */
function putOff(item) {
  const place = items.indexOf(item);
  sessionStorage.setItem(LATER, JSON.stringify([...putOffIds().filter((each) => each !== item.id), item.id]));
  items = [...items.filter((each) => each !== item), item];
  current = Math.min(place, items.length - 1);
  draw();
  byId("queue").children[current % SHOWN].focus();
  tell(items.length > 1 ? "Postponed: it waits behind the others." : "It waits; nothing else does.");
}

async function show() {
  const { questions } = await get("/questions");
  const later = putOffIds();
  items = questions.sort((one, other) => later.indexOf(one.id) - later.indexOf(other.id));
  current = Math.min(current, Math.max(0, items.length - 1));
  draw();
}

function mark(place) {
  current = place;
  [...byId("queue").querySelectorAll(".item")].forEach((each, at) => {
    const isNow = at === place % SHOWN;
    each.classList.toggle("now", isNow);
    each.tabIndex = isNow ? 0 : -1;
    if (isNow) each.setAttribute("aria-current", "true");
    else each.removeAttribute("aria-current");
  });
}

function move(place) {
  if (place < 0 || place >= items.length) return;
  const isElsewhere = Math.floor(place / SHOWN) !== Math.floor(current / SHOWN);
  current = place;
  if (isElsewhere) draw();
  byId("queue").children[place % SHOWN].focus();
}

byId("queue").addEventListener("keydown", (event) => {
  if (event.repeat && !"jk".includes(event.key)) return;
  if (event.ctrlKey || event.metaKey || event.altKey || isBusy) return;
  if (event.key === "j") move(current + 1);
  else if (event.key === "k") move(current - 1);
  else if (event.key === "l" && items[current]) putOff(items[current]);
  else if (items[current] && meant(items[current], ALSO[event.key] ?? event.key)) {
    event.preventDefault();
    if (isEditing()) attempt(() => decide(items[current], meant(items[current], ALSO[event.key] ?? event.key)));
    else tell("Switch on Edit to decide.", true);
  }
});
show().catch((error) => section("queue", () => { throw error; }));
