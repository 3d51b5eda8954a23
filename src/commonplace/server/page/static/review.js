import { address, attempt, bar, byId, day, doing, el, fill, get, isEditing, nothing, part, post, quiet, section, tag, tell, time } from "./page.js";

let items = [];
let current = 0;

const memory = (id) => get(`/memories/${part(id)}`, { touch: "false" }).catch(() => null);

/** One thing to decide: its title, its sides, and what each key does. */
async function load() {
  const [{ items: disputes }, { issues }] = await Promise.all([get("/graph/disputes"), get("/ledger/issues", { status: "open" })]);
  items = [...disputes.map(dispute), ...issues.map(issue)];
  current = Math.min(current, Math.max(0, items.length - 1));
  fill(byId("count"), items.length ? `${items.length} to decide` : "");
}

function dispute(each) {
  const settle = (fact) => done(() => post(`/graph/facts/${part(fact.uuid)}/settle`, { reason: "settled in Review" }), "Settled.");
  const keys = Object.fromEntries(each.relations.slice(0, 9).map((fact, place) => [String(place + 1), () => settle(fact)]));
  return {
    title: `Contradiction: ${each.relations[0]?.source_name ?? ""}`, why: ["These facts cannot all be true. Since ", day(each.since)], keys,
    sides: async () => each.relations.map((fact, place) => el("article", { class: "side-card" }, el("p", { dir: "auto" }, fact.fact), el("p", {}, quiet(fact.valid_from ? ["from ", day(fact.valid_from)] : "nobody said when", `, trusted ${fact.trust.toFixed(2)}`)),
      doing(`This one is right (${place + 1})`, () => settle(fact)))),
    more: el("a", { href: address("/graph", { entity: each.relations[0]?.source_name }) }, "See it in the graph"),
  };
}

function issue(each) {
  const work = `/ledger/issues/${part(each.id)}`;
  const accept = () => done(() => post(`${work}/process`), "Done. Runs has what undoes it.");
  const refuse = () => done(() => post(`${work}/close`, { reason: "closed in Review" }), "Closed.");
  return {
    title: each.title, why: each.notes.why ?? "", keys: { y: accept, n: refuse },
    sides: async () => (await Promise.all(each.memory_ids.slice(0, 6).map(memory))).map((one, place) => (one ? el("article", { class: "side-card" }, el("p", { dir: "auto" }, one.content.slice(0, 800)), el("p", {}, quiet(time(one.at), " "), one.tags.map(tag)), bar(one.retention, "Retention"), " ",
      el("a", { href: address("/memory", { id: one.id }) }, "Open")) : nothing(`${each.memory_ids[place]} is gone.`))),
    more: [tag(each.agent), tag(each.urgency), " ", doing("Do it (y)", accept), " ", doing("Do not (n)", refuse)],
  };
}

async function done(work, text) {
  await work();
  tell(text);
  await show();
}

async function draw() {
  if (!items.length) return nothing("Nothing waits for you.");
  const rows = await Promise.all(items.map(async (item, place) => el("section", { class: place === current ? "item now" : "item", tabindex: place === current ? 0 : -1, "aria-current": place === current ? "true" : null, focusin: () => move(place, false) },
    el("h2", { dir: "auto" }, item.title), el("p", {}, quiet(el("span", { dir: "auto" }, item.why))), place < current + 20 ? el("div", { class: "sides" }, await item.sides()) : null, el("p", {}, item.more))));
  return rows;
}

const show = () => section("queue", async () => { await load(); return draw(); });

function move(place, isKey = true) {
  if (place < 0 || place >= items.length) return;
  current = place;
  [...byId("queue").children].forEach((each, at) => {
    each.classList.toggle("now", at === place);
    each.tabIndex = at === place ? 0 : -1;
    if (at === place) each.setAttribute("aria-current", "true");
    else each.removeAttribute("aria-current");
  });
  if (isKey) byId("queue").children[place].focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  if (event.key === "j") move(current + 1);
  else if (event.key === "k") move(current - 1);
  else if (items[current]?.keys[event.key]) {
    if (isEditing()) attempt(items[current].keys[event.key]);
    else tell("Switch on Edit to decide.", true);
  }
});
show();
