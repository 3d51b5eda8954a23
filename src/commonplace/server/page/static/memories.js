import { attempt, bar, byId, day, el, fill, get, memoryLink, parameters, quiet, tag } from "./page.js";

const FACETS = [["tier", "tiers", "Tier"], ["status", "statuses", "Status"], ["category", "categories", "Category"], ["tag", "tags", "Tag"], ["source", "sources", "Source"], ["session", "sessions", "Session"]];
const SHOWN = 12, PAGE = 50;
const EVERY = ["active", "promoted", "archived"];
let cursors = [""];

function wanted() {
  const query = { min_trust: parameters.get("min_trust") };
  for (const [, name] of FACETS) query[name] = parameters.getAll(name);
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

function refilter(event) {
  const form = byId("facets"), focused = [event.target.name, event.target.value];
  for (const name of [...FACETS.map(([, field]) => field), "min_trust"]) parameters.delete(name);
  for (const [name, value] of new FormData(form)) if (value) parameters.append(name, value);
  history.replaceState(null, "", parameters.size ? `?${parameters}` : location.pathname);
  cursors = [""];
  attempt(async () => {
    await Promise.all([facets(), table()]);
    [...form.elements].find((each) => each.name === focused[0] && each.value === focused[1])?.focus();
  });
}

async function facets() {
  const { total, counts } = await get("/facets", wanted());
  fill(byId("total"), String(total));
  fill(byId("facets"), FACETS.map((each) => facet(each, counts)), trust(counts));
}

function row(memory) {
  const cell = (label, ...inside) => el("td", { dataset: { label } }, ...inside);
  return el("tr", {},
    cell("Memory", memoryLink(memory), " ", memory.tags.map(tag)),
    cell("Tier", memory.tier, memory.status === "active" ? null : quiet(` ${memory.status}`)),
    cell("Retention", bar(memory.retention, "Retention")),
    cell("Uses", String(memory.use_count)),
    cell("Source", el("span", { dir: "auto" }, memory.source || "–"), " ", quiet(memory.trust.toFixed(1))),
    cell("Time", day(memory.at)));
}

async function table() {
  const order = byId("order").value;
  const page = await get("/memories", { ...wanted(), order, limit: PAGE, cursor: cursors.at(-1) });
  fill(byId("table").tBodies[0], page.memories.map(row), page.memories.length ? null : el("tr", {}, el("td", { colspan: 6, class: "quiet" }, "No memories match these filters.")));
  byId("table").removeAttribute("aria-busy");
  byId("first").hidden = order === "newest" || page.memories.length < PAGE;
  byId("paging").hidden = !page.next_cursor && cursors.length < 2;
  byId("next").disabled = !page.next_cursor;
  byId("next").onclick = () => turn([...cursors, page.next_cursor]);
  byId("previous").disabled = cursors.length < 2;
  byId("previous").onclick = () => turn(cursors.slice(0, -1));
}

function turn(place) {
  cursors = place;
  attempt(async () => {
    await table();
    byId("table").scrollIntoView({ block: "start" });
  });
}

byId("order").addEventListener("change", () => turn([""]));
if (matchMedia("(max-width: 700px)").matches) byId("filters").open = false;
attempt(() => Promise.all([facets(), table()]));
