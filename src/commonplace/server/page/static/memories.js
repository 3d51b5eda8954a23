import { attempt, bar, byId, day, el, fill, get, listed, memoryLink, parameters, quiet, tag } from "./page.js";

const FACETS = [["tier", "tiers", "Tier"], ["status", "statuses", "Status"], ["category", "categories", "Category"], ["tag", "tags", "Tag"], ["source", "sources", "Source"], ["session", "sessions", "Session"]];
const DATES = [["since", "From"], ["until", "To"]];
const SHOWN = 12;
const EVERY = ["active", "promoted", "archived"];
// Of a long list only the rows in sight, and some beside them, are there; they are asked for in blocks.
const BLOCK = 100, BESIDE = 15, AT_ONCE = 2, MOST = 500_000;
const body = byId("table").tBodies[0];
const spacers = [0, 1].map(() => el("tr", { class: "spacer", "aria-hidden": "true" }, el("td", { colspan: 6 })));
const rows = new Map();
let list = { blocks: new Map(), asked: new Set(), total: 0 };
let focused = null;

/** A day that was chosen as the moment at which it begins, `further` days later. */
function begins(date, further = 0) {
  const [year, month, day] = date.split("-").map(Number);
  return new Date(year, month - 1, day + further).toISOString();
}

function wanted() {
  const query = { min_trust: parameters.get("min_trust") };
  for (const [, name] of FACETS) query[name] = parameters.getAll(name);
  for (const [place, [name]] of DATES.entries()) if (parameters.get(name)) query[name] = begins(parameters.get(name), place);
  return query;
}

function facet([name, field, title], counts) {
  const chosen = parameters.getAll(field);
  const values = name === "status" ? EVERY.map((each) => [each, counts.status?.[each]]) : Object.entries(counts[name] ?? {}).sort((a, b) => b[1] - a[1]);
  const some = values.filter(([value], place) => value && (place < SHOWN || chosen.includes(value)));
  for (const value of chosen) if (!some.some(([known]) => known === value)) some.push([value, 0]);
  if (!some.length) return null;
  return el("fieldset", {}, el("legend", {}, title), some.map(([value, count]) => {
    const box = el("input", { type: "checkbox", name: field, value, change: refilter });
    box.checked = chosen.includes(value);
    return el("label", { class: "check" }, box, el("span", { dir: "auto" }, value), count === undefined ? null : quiet(String(count)));
  }), values.length > some.length + 1 ? quiet(`and ${values.length - some.length} more`) : null);
}

function trust(counts) {
  const steps = Object.keys(counts.trust ?? {}).sort();
  const select = el("select", { name: "min_trust", change: refilter }, el("option", { value: "" }, "any"), steps.map((each) => el("option", { value: each }, `at least ${each}`)));
  select.value = parameters.get("min_trust") ?? "";
  return el("fieldset", {}, el("legend", {}, "Trust"), el("label", {}, quiet("Trusted "), select));
}

const dates = () => el("fieldset", {}, el("legend", {}, "Time"), DATES.map(([name, label]) => el("label", { class: "check" }, label, el("input", { type: "date", name, value: parameters.get(name) ?? "", change: refilter }))));

function refilter(event) {
  const form = byId("facets"), from = [event.target.name, event.target.value];
  for (const name of [...FACETS.map(([, field]) => field), ...DATES.map(([name]) => name), "min_trust"]) parameters.delete(name);
  for (const [name, value] of new FormData(form)) if (value) parameters.append(name, value);
  attempt(async () => {
    await show();
    [...form.elements].find((each) => each.name === from[0] && (each.value === from[1] || each.type === "date"))?.focus();
  });
}

async function facets(mine) {
  const { total, counts } = await get("/facets", wanted());
  if (mine !== list) return;
  list.total = Math.min(total, MOST);
  fill(byId("total"), String(total), total > MOST ? `, of which ${MOST} are listed` : "");
  fill(byId("facets"), FACETS.map((each) => facet(each, counts)), trust(counts), dates());
  byId("facets").removeAttribute("aria-busy");
  draw();
}

function row(place) {
  const memory = list.blocks.get(Math.floor(place / BLOCK))?.[place % BLOCK];
  const made = el("tr", { "aria-rowindex": place + 2, dataset: { place, waits: memory ? "" : "yes" } });
  const cell = (label, ...inside) => el("td", { dataset: { label } }, el("div", {}, ...inside));
  if (!memory) return fill(made, cell("Memory", "…"), [...Array(5)].map(() => el("td")));
  return fill(made,
    cell("Memory", memoryLink(memory), " ", memory.tags.map(tag)),
    cell("Tier", memory.tier, memory.status === "active" ? null : quiet(` ${memory.status}`)),
    cell("Retention", bar(memory.retention, "Retention")),
    cell("Uses", String(memory.use_count)),
    cell("Source", el("span", { dir: "auto" }, memory.source || "–"), " ", quiet(memory.trust.toFixed(1))),
    cell("Time", day(memory.at)));
}

/** The height of a row in pixels; the stylesheet says it in `rem`. */
const high = () => parseFloat(getComputedStyle(byId("table")).getPropertyValue("--row")) * parseFloat(getComputedStyle(document.documentElement).fontSize);

/** Let the table hold the rows in sight; what is there stays, and so does the focus. */
function draw() {
  const height = high(), top = body.getBoundingClientRect().top;
  const within = (place) => Math.max(0, Math.min(list.total, place));
  const [seen, end] = [within(Math.floor(-top / height)), within(Math.ceil((innerHeight - top) / height))];
  const [first, last] = [within(seen - BESIDE), within(end + BESIDE)];
  for (const [place, made] of rows) {
    if (place >= first && place < last) continue;
    made.remove();
    rows.delete(place);
  }
  spacers[0].firstChild.style.height = `${first * height}px`;
  spacers[1].firstChild.style.height = `${(list.total - last) * height}px`;
  let before = spacers[0];
  for (let place = first; place < last; place++) {
    const known = rows.get(place), isLate = known?.dataset.waits && list.blocks.has(Math.floor(place / BLOCK));
    const made = known && !isLate ? known : row(place);
    if (isLate) known.replaceWith(made);
    else if (!known) before.after(made);
    rows.set(place, made);
    before = made;
  }
  byId("table").setAttribute("aria-rowcount", list.total + 1);
  const at = document.activeElement;
  if (focused !== null && (at === document.body || body.contains(at))) rows.get(focused)?.querySelector("a")?.focus({ preventScroll: true });
  ask([seen, end - 1, first, last - 1].filter((place) => place >= 0 && place < list.total).map((place) => Math.floor(place / BLOCK)));
}

/** Ask for the blocks in sight, a few at once: whoever scrolls on gets those of where that ends. */
function ask(blocks) {
  const mine = list;
  for (const block of blocks) {
    if (mine.asked.size >= AT_ONCE || mine.blocks.has(block) || mine.asked.has(block)) continue;
    mine.asked.add(block);
    attempt(async () => {
      try {
        const { memories } = await listed({ ...wanted(), order: byId("order").value, limit: BLOCK, offset: block * BLOCK });
        if (mine !== list) return;
        mine.blocks.set(block, memories);
        if (!block) opened(memories);
      } finally {
        mine.asked.delete(block);
      }
      draw();
    });
  }
}

function opened(memories) {
  if (memories.length < BLOCK) list.total = memories.length;
  else list.total = Math.max(list.total, BLOCK);
  byId("table").removeAttribute("aria-busy");
  byId("none").hidden = memories.length > 0;
}

async function show() {
  list = { blocks: new Map(), asked: new Set(), total: 0 };
  focused = null;
  rows.clear();
  fill(body, spacers);
  history.replaceState(null, "", parameters.size ? `?${parameters}` : location.pathname);
  for (const id of ["table", "facets"]) byId(id).setAttribute("aria-busy", "true");
  ask([0]);
  await facets(list);
}

/** Walk to a row: it is focused as soon as it is there. */
function walk(place) {
  focused = Math.max(0, Math.min(list.total - 1, place));
  const top = body.getBoundingClientRect().top + focused * high();
  if (top < 0 || top + high() > innerHeight) scrollBy({ top: top - innerHeight / 2 });
  draw();
}

const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity };
body.addEventListener("keydown", (event) => {
  const step = STEPS[event.key], from = event.target.closest("tr");
  if (step === undefined || !from || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  walk(Number(focused ?? from.dataset.place) + step);
});
body.addEventListener("focusout", ({ relatedTarget }) => {
  if (relatedTarget && !body.contains(relatedTarget)) focused = null;
});
body.addEventListener("focusin", (event) => (focused = Number(event.target.closest("tr").dataset.place)));
for (const type of ["pointerdown", "wheel"]) addEventListener(type, () => (focused = null), { passive: true });
let frame = 0;
for (const type of ["scroll", "resize"]) addEventListener(type, () => {
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    draw();
  });
}, { passive: true });

byId("order").value = parameters.get("order") ?? "newest";
byId("order").addEventListener("change", () => {
  parameters.set("order", byId("order").value);
  attempt(show);
});
if (matchMedia("(max-width: 700px)").matches) byId("filters").open = false;
attempt(show);
