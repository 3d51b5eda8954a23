import { Refused, address, asOfSlider, attempt, bar, byId, call, day, dialog, difference, doing, el, fading, forget, get, memoryLink, nothing, parameters, part, post, quiet, said, section, sending, tag, tell, time } from "./page.js";

const id = parameters.get("id") ?? "";
const path = `/memories/${part(id)}`;
let asOf = parameters.get("as_of") ?? "";

const known = () => get(path, { touch: "false" });

const load = () => section("memory", async () => {
  const memory = await get(path, { touch: "false", as_of: asOf || null });
  const is = (status) => memory.status === status;
  document.title = `${memory.content.slice(0, 40)} · Commonplace`;
  return [
    el("article", { class: "memory", dir: "auto" }, memory.content),
    el("p", {}, memory.tags.map(tag)),
    asOf ? el("p", {}, quiet(`Version ${memory.version}, as it was known then.`)) : el("div", { class: "row" },
      is("archived") ? null : doing("Edit…", () => edit(memory), { id: "change" }),
      is("archived") ? null : doing("This is right", async () => { await post(`${path}/review`); await all(); tell("Noted: a review counts as a use."); }, { id: "right" }),
      is("archived") ? doing("Restore", async () => { await post(`${path}/restore`); await all(); }, { id: "kept" }) : doing("Archive", async () => { await post(`${path}/archive`); await all(); }, { id: "kept" }),
      doing("Forget…", async () => { if (await forget([id])) location.assign(address("/memories")); }, { id: "forget", class: "changes danger" }),
      el("span", { class: "quiet hint" }, "Switch on Edit to correct, archive or forget it.")),
    facts(memory)];
});

function facts(memory) {
  const rows = {
    Retention: [bar(memory.retention, "Retention"), quiet(` ${memory.retention.toFixed(2)}`)],
    Tier: memory.tier,
    Status: memory.status,
    Category: memory.category,
    Source: memory.source && said(memory.source),
    Origin: `${memory.origin}, trusted ${memory.trust.toFixed(2)}`,
    Session: memory.session && said(memory.session),
    Used: memory.use_count ? [memory.use_count === 1 ? "once, " : `${memory.use_count} times, last `, time(memory.last_used)] : "never",
    Reviewed: memory.review_count ? `${memory.review_count} times` : "",
    Date: time(memory.at),
    Stored: time(memory.created_at),
    "Made from": memory.derived_from.length ? memory.derived_from.map((each) => el("a", { href: address("/memory", { id: each }) }, each)) : "",
    Note: memory.vault_path,
    Id: el("code", {}, memory.id),
  };
  return el("dl", { class: "pairs" }, Object.entries(rows).filter(([, value]) => value).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

async function edit(memory) {
  const text = el("textarea", { id: "edit-content", rows: 6, dir: "auto", autofocus: true });
  const tags = el("textarea", { id: "edit-tags", rows: Math.max(2, memory.tags.length), dir: "auto" });
  text.value = memory.content;
  tags.value = memory.tags.join("\n");
  const [shown, tagged] = [text.value, tags.value];
  let version = memory.version;
  const saved = await dialog("Edit", sending([el("label", {}, "Text", text), el("label", {}, "Tags, one a line", tags), nothing("What you save is the next version; this one stays readable.")], async () => {
    const changed = {};
    if (text.value !== shown) changed.content = text.value;
    if (tags.value !== tagged) changed.tags = tags.value.split("\n").map((each) => each.trim()).filter(Boolean);
    try {
      return await call("PATCH", path, { body: changed, headers: { "If-Match": `"${version}"` } });
    } catch (error) {
      if (error.problem?.status !== 412) throw error;
      const now = await known();
      version = now.version;
      throw new Refused({ detail: `It has been changed since, and now says: ${now.content}`, remedy: "save again to put this in its place" });
    }
  }));
  if (!saved) return;
  await all();
  tell(saved.outcome === "unchanged" ? "Nothing was changed." : `Version ${saved.version} is saved.`);
}

async function versions() {
  const { versions: found } = await get(`${path}/versions`);
  return el("ol", { class: "versions", reversed: true }, found.toReversed().map((each, place) => {
    const before = found[found.length - place - 2];
    return el("li", {}, el("p", {}, el("b", {}, `Version ${each.version} `), quiet("from ", time(each.updated_at), each.expired_at ? [" to ", time(each.expired_at)] : ""), " ",
      each.expired_at ? el("button", { type: "button", class: "plain", click: () => slide(each.updated_at) }, "As it was then") : null),
      el("p", { dir: "auto" }, before ? difference(before.content, each.content) : each.content));
  }));
}

const CALLS = { recall: "recalled", search: "found by a search", context: "read as context", used: "used" };

async function uses() {
  const { items } = await get(`${path}/uses`);
  if (!items.length) return nothing("No search in the log has found it.");
  return el("ul", { class: "list" }, items.map((each) => el("li", {}, time(each.at), " ", CALLS[each.call] ?? each.call, each.place ? `, place ${each.place}` : "", each.query ? [" for ", said(each.query)] : "", " ", quiet(each.agent))));
}

async function place() {
  const { path: page, first_line: first, last_line: last, text } = await get(`${path}/place`);
  if (!page) return nothing("It is on no Markdown page.");
  return [el("p", {}, el("code", {}, page), " ", quiet(first === last ? `line ${first}` : `lines ${first}–${last}`)), el("pre", { dir: "auto" }, text)];
}

async function links() {
  const { links: found } = await get(`${path}/links`);
  if (!found.length) return nothing("It is linked to nothing.");
  const { memories } = await get(`${path}/neighbourhood`, { depth: 1 }).catch(() => ({ memories: [] }));
  const known = Object.fromEntries(memories.map((each) => [each.id, each]));
  return el("ul", { class: "list" }, found.map((each) => {
    const other = each.source === id ? each.target : each.source;
    const type = each.source === id ? each.type : `${each.type} (from there)`;
    return el("li", {}, quiet(type.replaceAll("_", " ")), " ", known[other] ? memoryLink(known[other]) : el("a", { href: address("/memory", { id: other }) }, other), " ",
      each.source === id ? doing("Unlink", async () => { await call("DELETE", `${path}/links/${part(other)}`, { query: { type: each.type } }); await section("links", links); }) : null);
  }));
}

const entity = (uuid, name) => el("a", { href: address("/graph", { entity: uuid }), dir: "auto" }, name);

async function said_() {
  const { items } = await get(`${path}/facts`);
  if (!items.length) return nothing("No fact was found in it.");
  return el("ul", { class: "list" }, items.map((each) => el("li", { class: each.valid_to ? "ended" : each.disputed ? "disputed" : null },
    entity(each.source_node_uuid, each.source_name), " ", quiet(each.relation_type.replaceAll("_", " ").toLowerCase()), " ", entity(each.target_node_uuid, each.target_name), " ",
    quiet(each.disputed ? "disputed" : each.valid_to ? ["until ", day(each.valid_to)] : ""))));
}

async function all() {
  await Promise.all([load(), section("versions", versions), section("fading", async () => fading(await known())), section("uses", uses), section("place", place), section("links", links), section("facts", said_)]);
}

/** Show the memory as it was at a time, "" for now. */
function turn(chosen) {
  asOf = chosen;
  history.replaceState(null, "", address("/memory", { id, as_of: asOf || null }));
  load();
}

/** Set the slider to a moment, which a version begins with. */
async function slide(moment) {
  turn(new Date(Date.parse(moment) + 1).toISOString());
  await drawSlider();
  byId("main").scrollIntoView();
  byId("as-of-slider").focus();
}

const drawSlider = async () => asOfSlider(byId("as-of"), asOf, turn, await known());
drawSlider().catch(() => {}); // what is wrong stands in the place of the memory
all();
