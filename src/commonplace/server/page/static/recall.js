import { address, asOfSlider, attempt, bar, byId, doing, el, fill, get, meta, parameters, post, quiet, tag, tell, time, nothing } from "./page.js";

const PHRASINGS = 4;
const SIGNALS = ["lexical", "dense", "late", "coverage", "words", "neighbours"];
const form = byId("form");
let turn = 0;
let marks = {}; // what was said of hits of this query, by their ids

function asked() {
  const given = new FormData(form), values = Object.fromEntries(given);
  const also = given.getAll("also").map((each) => each.trim()).filter(Boolean);
  const query = { query: values.query, limit: Number(values.limit) };
  if (values.method) query.method = values.method;
  if (values.kinds !== "all") query.kinds = [values.kinds];
  if (values.as_of) query.as_of = values.as_of;
  if (also.length) query.also = also;
  return query;
}

const bare = (text) => text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");

const words = (text) => bare(text).match(/[\p{L}\p{N}]+/gu) ?? [];
/** Whether two words are the same, or share their beginning, as stems do. */
const isSame = (one, other) => one === other || (one.length > 4 && other.length > 4 && one.slice(0, 5) === other.slice(0, 5));

/** A text with the words that were asked for marked. */
function marked(text, asked) {
  const isMeant = (word) => asked.some((each) => isSame(each, word));
  return text.slice(0, 4000).split(/([\p{L}\p{N}\p{M}]+)/u).map((piece, place) => (place % 2 && isMeant(bare(piece)) ? el("mark", {}, piece) : piece));
}

function signals(hit, greatest) {
  return el("dl", { class: "signals" }, SIGNALS.filter((name) => name in hit.signals).map((name) =>
    [el("dt", {}, name), el("dd", {}, bar(hit.signals[name] / (greatest[name] || 1), name), quiet(hit.signals[name].toFixed(2)))]));
}

function explained(receipt, below, floor) {
  const list = (words) => (words.length ? words.join(", ") : "none");
  const weighty = receipt.signals.filter((each) => each.weight || each.evidence);
  return [
    el("p", {}, `Rank ${receipt.rank}, score ${receipt.score.toFixed(3)}; the minimum score is ${floor.toFixed(2)}.`, below ? " Not shown by default." : null),
    el("p", {}, "Words that matched: ", el("b", { dir: "auto" }, list(receipt.matched_terms)), "; missing: ", el("b", { dir: "auto" }, list(receipt.missing_terms)), "."),
    el("table", {}, el("thead", {}, el("tr", {}, ["Signal", "Value", "Weight", "Evidence"].map((each, place) => el("th", { scope: "col", class: place ? "number" : null }, each)))),
      el("tbody", {}, weighty.map((each) => el("tr", {}, el("td", {}, each.name.replaceAll("_", " ")), [each.value, each.weight, each.evidence].map((value) => el("td", { class: "number" }, value.toFixed(2))))))),
    receipt.stands_before ? el("p", {}, "It ranks before an older memory that it may have replaced: ", el("a", { href: address("/memory", { id: receipt.stands_before }) }, receipt.stands_before)) : null,
  ];
}

/** Why a hit is not shown, in a line. */
function reason(hit, { rejected, missing }, floor) {
  const isHeldBack = rejected === "below the minimum score" && hit.score >= floor;
  const where = isHeldBack ? "Held back, since the best hit is too weak" : hit.score < floor ? `${(floor - hit.score).toFixed(2)} below the minimum score` : rejected ? `${rejected[0].toUpperCase()}${rejected.slice(1)}` : "Beyond the limit";
  return el("p", { class: "quiet why" }, where, missing.length ? ["; it does not say ", missing.map((each, place) => [place ? ", " : "", el("b", { dir: "auto" }, each)])] : "; it has the words", ".");
}

/** What was said of a hit, and the buttons to say it: a golden query, which health asks from then on. */
function verdict(hit, query) {
  if (hit.kind !== "memory") return null;
  const place = el("span", { class: "verdict" }), id = hit.owner_id;
  const draw = () => fill(place, marks[id] ? tag(`marked ${marks[id]}`) : null, [["right", "Right"], ["wrong", "Wrong"]].map(([word, label]) =>
    [" ", doing(label, () => say(marks[id] === word ? "none" : word), { "aria-pressed": String(marks[id] === word), "data-verdict": word })]));
  const say = async (word) => {
    keep(await post("/golden", { query: query.query, id, verdict: word }));
    draw();
    place.querySelector(`[data-verdict="${word}"]`)?.focus();
    tell(word === "none" ? "Taken back." : `Marked ${word}: health asks this query from now on.`);
  };
  draw();
  return place;
}

/** Remember what was said of the hits of one query. */
function keep(golden) {
  marks = Object.fromEntries([...golden.relevant.map((id) => [id, "right"]), ...golden.irrelevant.map((id) => [id, "wrong"])]);
}

/** A hit; `below` says why it is not shown, where it is not. */
function hitItem(hit, query, asked, greatest, below, floor) {
  const body = el("div", {});
  const why = el("details", { toggle: () => {
    if (!why.open || body.childNodes.length) return;
    attempt(async () => {
      const receipt = await post("/why", { ...query, hit_id: hit.id, min_score: 0, limit: query.limit + 10 });
      fill(body, explained(receipt, below, floor));
    });
  } }, el("summary", {}, "Why?"), body);
  const name = hit.kind === "memory" ? el("a", { href: address("/memory", { id: hit.owner_id }) }, hit.title || "Open") : el("code", {}, hit.path || hit.owner_id);
  return el("li", { class: below && "below" },
    el("div", { class: "row" }, el("b", {}, hit.probability === null ? hit.score.toFixed(2) : `${Math.round(hit.probability * 100)} %`), bar(hit.score, "Score"), tag(hit.confidence), quiet(hit.kind), name, quiet(time(hit.at)), hit.tags.map(tag), verdict(hit, query)),
    el("p", { dir: "auto", class: "text" }, marked(hit.text, asked)),
    hit.superseded_by ? el("p", { class: "quiet" }, hit.is_superseded ? "Superseded: " : "Older: ", el("a", { href: address("/memory", { id: hit.superseded_by }) }, hit.is_superseded ? "another one" : "a newer one"), hit.is_superseded ? " replaced it." : " may have replaced it.") : null,
    below, signals(hit, greatest), why);
}

async function ask() {
  const query = asked();
  if (!query.query.trim()) return fill(byId("hits"));
  const mine = ++turn;
  history.replaceState(null, "", address("/recall", { query: query.query, limit: query.limit, method: query.method, as_of: query.as_of, also: query.also, kinds: form.elements.kinds.value }));
  const { found, below, reasons, words: meant, floor, golden } = await post("/page/recall", query);
  if (mine !== turn) return;
  const all = [...found.hits, ...below], meantWords = meant.flatMap(words);
  const greatest = {};
  for (const name of SIGNALS) greatest[name] = Math.max(...all.map((each) => each.signals[name] ?? 0), 0);
  keep(golden ?? { relevant: [], irrelevant: [] });
  const line = el("li", { class: "floor", id: "floor" }, `The floor, ${floor.toFixed(2)}`,
    found.held_back ? ` · ${found.held_back} below it, the best at ${found.best_held_back.toFixed(2)}` : " · nothing is below it", below.length ? ` · the next ${below.length}, below it or beyond the limit:` : "");
  fill(byId("hits"), found.hits.map((each) => hitItem(each, query, meantWords, greatest, null, floor)), all.length ? line : null, below.map((each) => hitItem(each, query, meantWords, greatest, reason(each, reasons[each.id], floor), floor)));
  fill(byId("summary"), found.hits.length ? `${found.hits.length} found in ${found.latency_ms} ms (${found.method})` : nothing("No result above the floor."),
    found.corrected_query ? [" · read as ", el("b", { dir: "auto" }, found.corrected_query)] : null, found.notices.map((each) => ` · ${each}`));
  byId("copy").disabled = false;
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

async function command() {
  const query = asked();
  const words = ["commonplace", "search", "--limit", String(query.limit)];
  for (const each of query.kinds ?? []) words.push("--kind", each);
  if (query.method) words.push("--method", query.method);
  if (query.as_of) words.push("--as-of", quoted(query.as_of));
  for (const each of query.also ?? []) words.push("--also", quoted(each));
  if (meta("namespace")) words.push("--namespace", quoted(meta("namespace")));
  words.push("--store", quoted((await get("/index")).store));
  return [...words, "--", quoted(query.query)].join(" ");
}

byId("copy").addEventListener("click", () => attempt(async () => {
  const text = await command();
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    return tell(`The browser does not allow copying. The command: ${text}`);
  }
  tell(`Copied: ${text}`);
}));
form.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(ask);
});
byId("limit").addEventListener("input", () => fill(byId("limit-shown"), byId("limit").value));
// A text is asked for when it is sent; where it merely loses the focus, what is clicked would go from under the mouse.
form.addEventListener("change", ({ target }) => target.matches("select, #limit") && attempt(ask));

/** A field for one phrasing more, while there are fewer than five. */
function offerPhrasing(value = "") {
  const fields = [...form.querySelectorAll("[name=also]")];
  if (fields.length < PHRASINGS && fields.every((each) => each.value.trim())) byId("phrasings").append(el("input", { name: "also", autocomplete: "off", dir: "auto", value, "aria-label": "Further phrasing" }));
}

byId("phrasings").addEventListener("input", () => offerPhrasing());
parameters.getAll("also").forEach(offerPhrasing);
offerPhrasing();
for (const name of ["query", "limit", "method", "kinds"]) if (parameters.get(name)) form.elements[name].value = parameters.get(name);
fill(byId("limit-shown"), byId("limit").value);
attempt(async () => {
  await asOfSlider(byId("as-of"), parameters.get("as_of") ?? "", () => attempt(ask));
  await ask();
}).finally(() => byId("hits").removeAttribute("aria-busy"));
byId("query").focus();
