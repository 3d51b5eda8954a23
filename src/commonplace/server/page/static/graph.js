import cytoscape from "./vendor/cytoscape.esm.min.js";
import { address, attempt, byId, day, dialog, doing, el, fill, get, nothing, parameters, part, plural, post, quiet, Refused, section, sending, tell } from "./page.js";

const FOLD_ABOVE = 40, FOLD_FROM = 4, ROUNDS = 8, STEPS = 60, STEP_MS = 120, LIMIT = 200, LANES = 40;
const TINTS = ["#3b7dd8", "#c2571a", "#2f8f5b", "#9a4fb5", "#b8860b", "#c23b6b", "#3a8f9a", "#6b6bd6"];
const seconds = (text) => (text ? Date.parse(text) : null);
let graph = null; // what is shown: the centre, entities and relations of the answer
let drawn = null; // by cytoscape
let trail = [];
let unfolded = new Set();
let hidden = new Set(); // types of facts
let hiddenKinds = new Set(); // types of entities
let kinds = new Map(); // the types of the entities that are shown, by their ids
let span = [0, 1];
let player = null;
let turn = 0;

// Which facts there are at a time, and how they are.

const moment = () => (Number(byId("moment").value) >= 1000 ? Infinity : span[0] + ((span[1] - span[0]) * Number(byId("moment").value)) / 1000);

/** How a fact is at a time: "" where it is not there yet. */
function stateOf(fact, at) {
  const [from, to] = [seconds(fact.valid_from), seconds(fact.valid_to)];
  if (from !== null && from > at) return "";
  if (fact.retracted || (to !== null && to <= at) || (fact.expired_at && to === null)) return "ended";
  return fact.disputed ? "disputed" : "open";
}

function spanOf(relations) {
  const times = relations.flatMap((each) => [seconds(each.valid_from), seconds(each.valid_to)]).filter((each) => each !== null);
  const [first, last] = [Math.min(...times, Date.now()), Math.max(...times, Date.now())];
  const margin = Math.max((last - first) * 0.02, 86400e3);
  return [first - margin, last + margin];
}

// Drawing.

const words = (type) => type.replaceAll("_", " ").toLowerCase();

function neighbours() {
  const near = new Map(graph.entities.map((each) => [each.uuid, new Set()]));
  for (const each of graph.relations) {
    near.get(each.source_node_uuid)?.add(each.target_node_uuid);
    near.get(each.target_node_uuid)?.add(each.source_node_uuid);
  }
  return near;
}

/** Groups of entities that are more closely related to each other than to others: each takes the name that most about it have. */
function clusters(near) {
  const names = new Map([...near.keys()].filter((id) => id !== graph.centre).map((id) => [id, id]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const id of names.keys()) {
      const counts = new Map();
      for (const other of near.get(id)) if (names.has(other)) counts.set(names.get(other), (counts.get(names.get(other)) ?? 0) + 1);
      const most = Math.max(0, ...counts.values());
      if (most && counts.get(names.get(id)) !== most) names.set(id, [...counts].filter(([, count]) => count === most).map(([name]) => name).sort()[0]);
    }
  }
  return Map.groupBy(names.keys(), (id) => names.get(id));
}

/** What stands in the place of which entities: above forty, those that have one neighbour alone, and then clusters. */
function folded() {
  const into = new Map(), titles = new Map();
  if (graph.entities.length <= FOLD_ABOVE) return { into, titles };
  const near = neighbours(), leaves = new Map(), name = new Map(graph.entities.map((each) => [each.uuid, each.name]));
  for (const [id, others] of near) {
    const [parent] = others;
    if (others.size === 1 && id !== graph.centre) leaves.set(parent, [...(leaves.get(parent) ?? []), id]);
  }
  let shown = graph.entities.length; // if nothing was unfolded: what is unfolded lets nothing else be folded
  const fold = (key, ids, title) => {
    shown -= ids.length - 1;
    if (unfolded.has(key)) return;
    ids.forEach((id) => into.set(id, `more:${key}`));
    titles.set(`more:${key}`, title);
  };
  for (const [parent, ids] of leaves) if (ids.length >= FOLD_FROM) fold(parent, ids, `${ids.length} more`);
  const groups = [...clusters(near)].map(([key, ids]) => [`of ${key}`, ids]).filter(([, ids]) => ids.length >= FOLD_FROM);
  for (const [key, ids] of groups.sort(([, one], [, other]) => other.length - one.length)) {
    if (shown <= FOLD_ABOVE) break;
    const [first] = [...ids].sort((one, other) => near.get(other).size - near.get(one).size);
    fold(key, ids, `${name.get(first)} and ${ids.length - 1} more`);
  }
  return { into, titles };
}

const kindsShown = () => [...new Set(graph.entities.map((each) => each.entity_type))].sort();
const tintOf = (type) => TINTS[kindsShown().indexOf(type) % TINTS.length];

function elements() {
  const { into, titles } = folded();
  const nodes = graph.entities.filter((each) => !into.has(each.uuid)).map((each) => ({
    data: { id: each.uuid, label: each.name, tint: tintOf(each.entity_type), distance: each.distance ?? 9 },
    classes: each.uuid === graph.centre ? "centre" : "",
  }));
  const places = [...new Set(into.values())];
  for (const id of places) nodes.push({ data: { id, label: titles.get(id), tint: "#888888", distance: 9 }, classes: "folded" });
  fill(byId("folded"), places.map((id) => el("li", {}, el("button", { type: "button", dir: "auto", click: () => unfold(id) }, `Unfold ${titles.get(id)}`))));
  const ends = new Set(nodes.map((each) => each.data.id));
  const edges = new Map();
  for (const each of graph.relations) {
    const [source, target] = [each.source_node_uuid, each.target_node_uuid].map((id) => into.get(id) ?? id);
    if (!ends.has(source) || !ends.has(target) || (source === target && source.startsWith("more:"))) continue;
    const id = source.startsWith("more:") || target.startsWith("more:") ? `${source} ${target}` : each.uuid;
    const facts = [...(edges.get(id)?.data.facts ?? []), each.uuid];
    edges.set(id, { data: { id, source, target, facts, label: facts.length > 1 ? `${facts.length} facts` : words(each.relation_type) } });
  }
  return [...nodes, ...edges.values()];
}

function unfold(id) {
  unfolded.add(id.slice("more:".length));
  draw();
  follow();
  byId("folded").querySelector("button")?.focus();
}

function look() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return [
    { selector: "node", style: { label: "data(label)", "background-color": "data(tint)", color: colour("ink"), "font-size": 12, "text-valign": "bottom", "text-margin-y": 4, "text-max-width": 110, "text-wrap": "ellipsis", width: 22, height: 22, "text-background-color": colour("card"), "text-background-opacity": 0.85, "text-background-padding": 2 } },
    { selector: "node.centre", style: { width: 36, height: 36, "font-weight": "bold", "border-width": 3, "border-color": colour("ink") } },
    { selector: "node.folded", style: { shape: "round-rectangle", width: 30 } },
    { selector: "edge", style: { "curve-style": "bezier", "target-arrow-shape": "triangle", "arrow-scale": 0.8, width: 2, "line-color": colour("soft"), "target-arrow-color": colour("soft"), label: "data(label)", color: colour("soft"), "font-size": 9, "text-rotation": "autorotate", "text-background-color": colour("card"), "text-background-opacity": 0.85 } },
    { selector: "edge.ended", style: { "line-style": "dotted", "line-color": colour("strong-line"), "target-arrow-color": colour("strong-line") } },
    { selector: "edge.disputed", style: { "line-style": "dashed", "line-color": colour("bad"), "target-arrow-color": colour("bad") } },
    { selector: ".away", style: { display: "none" } },
    { selector: ":selected", style: { "overlay-color": colour("accent"), "overlay-opacity": 0.25 } },
  ];
}

function draw() {
  drawn?.destroy();
  drawn = cytoscape({ container: byId("canvas"), elements: elements(), style: look(), minZoom: 0.2, maxZoom: 3,
    layout: { name: "concentric", concentric: (node) => -node.data("distance"), levelWidth: () => 1, minNodeSpacing: 90, startAngle: 0, animate: false } });
  if (drawn.nodes().length > 2) drawn.layout({ name: "cose", randomize: false, animate: false, nodeRepulsion: () => 90000, idealEdgeLength: () => 95, numIter: 400, padding: 25 }).run();
  if (drawn.zoom() > 1.4) { drawn.zoom(1.4); drawn.center(); }
  drawn.on("tap", "node", ({ target }) => {
    const id = target.id();
    if (id.startsWith("more:")) unfold(id);
    else if (id !== graph.centre) attempt(() => walk(graph.entities.find((each) => each.uuid === id)));
  });
  drawn.on("tap", "edge", ({ target }) => showFacts(graph.relations.filter((each) => target.data("facts").includes(each.uuid))));
}

const isHidden = (fact) => hidden.has(fact.relation_type) || [fact.source_node_uuid, fact.target_node_uuid].some((id) => id !== graph.centre && hiddenKinds.has(kinds.get(id)));

/** Let drawing, list and lanes be as at the chosen time. */
function follow() {
  const at = moment();
  const states = new Map(graph.relations.map((each) => [each.uuid, isHidden(each) ? "" : stateOf(each, at)]));
  drawn.batch(() => {
    drawn.edges().forEach((edge) => {
      const own = edge.data("facts").map((each) => states.get(each));
      const state = ["disputed", "open", "ended"].find((each) => own.includes(each));
      edge.toggleClass("away", !state).toggleClass("ended", state === "ended").toggleClass("disputed", state === "disputed");
    });
    drawn.nodes().forEach((node) => { node.toggleClass("away", node.id() !== graph.centre && !node.connectedEdges().some((edge) => !edge.hasClass("away"))); });
  });
  for (const item of byId("facts").querySelectorAll("li")) {
    const state = states.get(item.dataset.id);
    item.hidden = !state;
    item.className = state ?? "";
  }
  const isNow = at === Infinity;
  fill(byId("moment-shown"), isNow ? "all times until now" : day(new Date(at).toISOString()));
  byId("moment").setAttribute("aria-valuetext", isNow ? "now" : new Date(at).toDateString());
  const line = byId("lanes").querySelector(".at");
  if (line) line.style.insetInlineStart = `${place(at)}%`;
}

const place = (at) => (at === Infinity ? 100 : Math.max(0, Math.min(100, ((at - span[0]) / (span[1] - span[0])) * 100))).toFixed(2);

/** A lane for each type of fact, as many lines high as facts hold beside each other; each fact is a bar to choose. */
function lanes(entries) {
  const all = [...new Map(entries.map((each) => [each.relation.uuid, each.relation])).values()], facts = all.slice(0, LANES);
  if (!facts.length) return nothing("Nothing is known of when.");
  const ends = (fact) => [Number(place(seconds(fact.valid_from) ?? span[0])), Number(place(seconds(fact.valid_to) ?? Infinity))];
  const rows = [];
  for (const [type, own] of Map.groupBy(facts, (fact) => fact.relation_type)) {
    const lines = [];
    for (const fact of own.sort((one, another) => ends(one)[0] - ends(another)[0])) {
      const line = lines.find((each) => ends(each.at(-1))[1] <= ends(fact)[0]);
      if (line) line.push(fact);
      else lines.push([fact]);
    }
    rows.push(...lines.map((line, number) => el("div", { class: "lane", role: "listitem" }, el("span", { class: "quiet" }, number ? "" : words(type)), el("span", { class: "bars" }, line.map((fact) => {
      const [from, to] = ends(fact), state = stateOf(fact, Infinity) || "open";
      const bar = el("button", { type: "button", class: state, dir: "auto", title: fact.fact, "aria-label": `${other(fact)}, ${state}`, click: () => showFact(fact) }, fact.source_node_uuid === graph.centre ? fact.target_name : fact.source_name);
      bar.style.insetInlineStart = `${from}%`;
      bar.style.inlineSize = `${Math.max(1, to - from)}%`;
      return bar;
    })))));
  }
  return el("div", { class: "lanes", role: "list" }, rows, el("div", { class: "lane", "aria-hidden": "true" }, el("span", {}), el("span", { class: "bars" }, el("span", { class: "at" }))),
    el("p", { class: "quiet ends" }, day(new Date(span[0]).toISOString()), day(new Date(span[1]).toISOString())), all.length > LANES ? nothing(`and ${all.length - LANES} more`) : null);
}

const other = (fact) => `${words(fact.relation_type)} ${fact.source_node_uuid === graph.centre ? fact.target_name : fact.source_name}`;

// Details.

const showEntity = (entity) => section("detail", async () => {
  const view = await get(`/graph/entities/${part(entity.uuid)}`);
  return [el("h2", { dir: "auto" }, view.name), el("p", {}, quiet(view.entity_type), view.aliases.length ? [quiet(", also "), el("span", { dir: "auto" }, view.aliases.join(", "))] : null),
    el("p", { dir: "auto" }, view.summary || "Nothing more is known about it."), graph.is_capped ? nothing("Not everything is shown here.") : null,
    el("p", {}, doing("Merge with…", () => merge(view), { id: "merge" }), " ", doing("Split…", () => split(view), { id: "split" }))];
});

const why = () => el("input", { name: "reason", autocomplete: "off", maxlength: 1000 });

/** Choose another entity that is the same, and make them one. */
async function merge(view) {
  const found = el("ul", { class: "list" }), query = el("input", { type: "search", autocomplete: "off", dir: "auto", autofocus: true }), reason = why();
  query.value = view.name;
  let looked = 0;
  const look = async () => {
    const mine = ++looked;
    const { entities } = query.value.trim() ? await post("/graph/entities/search", { query: query.value }) : { entities: [] };
    if (mine !== looked) return;
    const others = entities.filter((each) => each.uuid !== view.uuid), chosen = found.querySelector(":checked")?.value;
    fill(found, others.length ? others.map((each) => el("li", {}, el("label", { class: "check" }, el("input", { type: "radio", name: "other", value: each.uuid, required: true, checked: each.uuid === chosen }), el("span", { dir: "auto" }, each.name), " ", quiet(each.entity_type, " ", el("span", { dir: "auto" }, (each.summary || "").slice(0, 120)))))) : el("li", {}, nothing("No other has that name.")));
  };
  query.addEventListener("input", () => attempt(look));
  await look();
  let merged = null;
  const send = async () => {
    const chosen = found.querySelector(":checked")?.value;
    if (!chosen) throw new Refused({ detail: "Choose the one that is the same." });
    merged = await post(`/graph/entities/${part(view.uuid)}/merge`, { other: chosen, reason: reason.value });
    return true;
  };
  if (!await dialog(`Who or what is the same as ${view.name}?`, sending([el("label", {}, "Search", query), found, el("label", {}, "Reason", reason), nothing("Names and facts of the other become those of this one. Split undoes it.")], send, "Merge"))) return;
  await show(view.uuid);
  tell(`${merged.merged.name} is ${merged.entity.name} now; ${plural(merged.relations.length, "fact")} moved.`);
}

/** Choose the names that are somebody else's, and make them entities of their own. */
async function split(view) {
  const reason = why();
  const names = view.aliases.map((name, at) => el("label", { class: "check" }, el("input", { type: "checkbox", name: "names", value: name, autofocus: at === 0 }), el("span", { dir: "auto" }, name)));
  let parted = null;
  const send = async () => {
    const chosen = names.map((each) => each.firstChild).filter((each) => each.checked).map((each) => each.value);
    ({ parted } = await post(`/graph/entities/${part(view.uuid)}/split`, { names: chosen, reason: reason.value }));
    return true;
  };
  if (!await dialog(`Split ${view.name}`, sending([nothing("Choose the names that belong to someone else. Without a choice, everything merged into it becomes an entity of its own again."), names, el("label", {}, "Reason", reason)], send, "Split"))) return;
  await show(view.uuid);
  tell(`Split: ${parted.map((each) => each.name).join(", ")} by itself again.`);
}

/** Show what an edge stands for: a fact, or those of entities that are drawn as one. */
const showFacts = (facts) => (facts.length === 1 ? showFact(facts[0]) : section("detail", () => [el("h2", {}, `${facts.length} facts`), el("ul", { class: "list" }, facts.map((fact) => el("li", {}, choice(fact))))]));

const choice = (fact) => el("button", { type: "button", class: "plain", dir: "auto", click: () => showFact(fact) }, fact.fact || `${fact.source_name} ${other(fact)}`);

const showFact = (fact) => section("detail", async () => {
  const episodes = await Promise.all(fact.episodes.slice(0, 5).map((each) => get(`/graph/episodes/${part(each)}`).catch(() => null)));
  return [
    el("h2", { dir: "auto" }, fact.fact || `${fact.source_name} ${other(fact)}`),
    el("p", {}, quiet(el("span", { dir: "auto" }, fact.source_name), ` ${words(fact.relation_type)} `, el("span", { dir: "auto" }, fact.target_name))),
    el("dl", { class: "pairs" }, el("dt", {}, "True from"), el("dd", {}, day(fact.valid_from) || "unknown"), el("dt", {}, "until"), el("dd", {}, day(fact.valid_to) || "open"),
      el("dt", {}, "Known since"), el("dd", {}, day(fact.created_at)), el("dt", {}, "Confidence"), el("dd", {}, fact.confidence.toFixed(2))),
    fact.disputed ? el("p", { class: "error" }, "Disputed: it contradicts other facts. ", doing("This one is right", () => settle(fact), { id: "settle" })) : null,
    el("h3", {}, "Said in"),
    episodes.some(Boolean) ? el("ul", { class: "list" }, episodes.filter(Boolean).map((each) => el("li", {}, el("span", { dir: "auto" }, each.content.slice(0, 600)), " ",
      quiet(each.source, ", ", day(each.reference_time)), each.memory ? [" ", el("a", { href: address("/memory", { id: each.memory }) }, "memory")] : null))) : nothing("No source is kept.")];
});

async function settle(fact) {
  const { ended, retracted } = await post(`/graph/facts/${part(fact.uuid)}/settle`, { reason: "settled on the page" });
  await show(graph.centre);
  tell(`Settled: ${ended.length} ended, ${retracted.length} retracted.`);
}

function factList() {
  if (!graph.relations.length) return nothing("No facts.");
  return el("ul", { class: "list" }, graph.relations.map((fact) => el("li", { dataset: { id: fact.uuid } },
    choice(fact), " ",
    quiet(fact.valid_from ? day(fact.valid_from) : "", fact.valid_to ? [" – ", day(fact.valid_to)] : ""), " ",
    [[fact.source_node_uuid, fact.source_name], [fact.target_node_uuid, fact.target_name]].filter(([id]) => id !== graph.centre).map(([id, name]) =>
      [el("button", { type: "button", class: "plain", click: () => attempt(() => walk({ uuid: id, name })) }, `→ ${name}`), " "]))));
}

// Walking.

/** A box for each type; those that are not checked are hidden. */
function choices(id, types, away, mark = () => null) {
  fill(byId(id), types.map((type) => {
    const box = el("input", { type: "checkbox", change: () => { away[box.checked ? "delete" : "add"](type); follow(); } });
    box.checked = !away.has(type);
    return el("label", { class: "check" }, box, mark(type), words(type));
  }));
}

/** Show what lies about an entity; false where something else was asked for meanwhile. */
async function show(id) {
  const query = { depth: byId("depth").value, limit: LIMIT, include_past: "true" }, mine = ++turn;
  const [answer, { entries }] = await Promise.all([get(`/graph/entities/${part(id)}/neighbourhood`, query), get(`/graph/entities/${part(id)}/timeline`)]);
  if (mine !== turn) return false;
  graph = answer;
  span = spanOf(graph.relations);
  byId("view").hidden = false;
  byId("start").hidden = true;
  kinds = new Map(graph.entities.map((each) => [each.uuid, each.entity_type]));
  choices("types", [...new Set(graph.relations.map((each) => each.relation_type))].sort(), hidden);
  choices("kinds", kindsShown(), hiddenKinds, (type) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = tintOf(type);
    return swatch;
  });
  fill(byId("facts"), factList());
  fill(byId("lanes"), lanes(entries));
  draw();
  follow();
  await showEntity(graph.entities[0]);
  return mine === turn;
}

async function walk(entity) {
  stop();
  const before = unfolded;
  unfolded = new Set();
  try {
    if (!await show(entity.uuid)) return;
  } catch (error) {
    unfolded = before;
    throw error;
  }
  byId("moment").value = 1000;
  follow();
  const centre = graph.entities[0];
  const known = trail.findIndex((each) => each.uuid === centre.uuid);
  trail = known < 0 ? [...trail, centre] : trail.slice(0, known + 1);
  history.replaceState(null, "", address("/graph", { entity: centre.name }));
  fill(byId("trail"), trail.map((each, at) => el("li", {}, el("button", { type: "button", class: "plain", dir: "auto", "aria-current": at === trail.length - 1 ? "page" : null, click: () => attempt(() => walk(each)) }, each.name))));
}

const search = (query) => section("found", async () => {
  const { entities } = await post("/graph/entities/search", { query });
  return entities.length ? entities.slice(0, 12).map((each) => el("li", {}, el("button", { type: "button", dir: "auto", click: () => attempt(() => { trail = []; return walk(each); }) }, each.name), " ", quiet(each.entity_type))) : el("li", {}, nothing("Nothing has that name."));
});

function stop() {
  clearInterval(player);
  player = null;
  byId("play").setAttribute("aria-pressed", "false");
  fill(byId("play"), "Play");
}

function play() {
  if (player !== null) return stop();
  const slider = byId("moment");
  if (Number(slider.value) >= 1000) slider.value = 0;
  byId("play").setAttribute("aria-pressed", "true");
  fill(byId("play"), "Stop");
  player = setInterval(() => {
    slider.value = Number(slider.value) + 1000 / STEPS;
    follow();
    if (Number(slider.value) >= 1000) stop();
  }, STEP_MS);
}

byId("play").addEventListener("click", play);
byId("moment").addEventListener("input", follow);
byId("depth").addEventListener("change", () => attempt(() => show(graph.centre)));
byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  search(byId("query").value);
});
new MutationObserver(() => drawn?.style(look())).observe(document.documentElement, { attributeFilter: ["data-theme"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn?.style(look()));

byId("query").focus();
if (parameters.get("entity")) {
  attempt(() => walk({ uuid: parameters.get("entity"), name: parameters.get("entity") })).finally(() => byId("start").removeAttribute("aria-busy"));
} else {
  section("start", async () => {
    const { items } = await get("/graph/communities", { limit: 8 });
    if (!items.length) return nothing("The graph is empty: memories and episodes that name people, places and things fill it.");
    return [el("h2", {}, "Start with"), el("ul", { class: "chips" }, items.map((each) => el("li", {}, el("button", { type: "button", dir: "auto", click: () => attempt(() => walk({ uuid: each.entities[0].uuid, name: each.name })) }, each.name), " ", quiet(`${each.size} related`))))];
  });
}
