import { address, attempt, bar, byId, el, fill, get, linkTo, memoriesOf, nothing, parameters, plural, post, quiet, section, time } from "./page.js";

const nameOf = (hit) => (hit.kind === "memory" ? el("a", { href: address("/memory", { id: hit.owner_id }), dir: "auto" }, hit.text.slice(0, 100)) : el("span", { dir: "auto" }, hit.path || hit.text.slice(0, 100)));

/** The text, token by token: each in the other colour than the one before; its number is its title. */
function tokens(pieces) {
  let number = 0;
  return el("pre", { class: "tokens", dir: "auto", tabindex: 0, "aria-label": "The text, token by token" }, pieces.map(([text, count]) => {
    const bare = text.trimStart(), first = number + 1;
    number += count;
    const title = count === 1 ? `token ${number}` : count ? `tokens ${first}–${number}` : "no token";
    return [text.slice(0, text.length - bare.length), el("span", { title, class: (count === 1 ? first : number) % 2 ? "odd" : "even" }, bare)];
  }));
}

function omitted(hits) {
  if (!hits.length) return null;
  return el("details", { open: true, class: "omitted" }, el("summary", {}, `Left out (${hits.length})`),
    el("ul", { class: "list" }, hits.map((hit) => el("li", {}, el("b", {}, hit.reason), ": ", nameOf(hit), " ", quiet(hit.confidence, ` ${hit.score.toFixed(2)}`)))));
}

function shown(answer, most) {
  if (!answer.text) return [nothing("Nothing."), omitted(answer.omitted)];
  return [
    el("p", {}, `${answer.tokens} of at most ${most} tokens `, bar(answer.tokens / most, "Share of the tokens"), ` from ${plural(answer.hits.length, "text")}`, answer.left_out ? `; ${answer.left_out} more had no room.` : "."),
    el("ul", { class: "list" }, answer.hits.map((hit) => el("li", {}, nameOf(hit), " ", quiet(`${answer.shares[hit.id]} tokens, `, hit.confidence, " ", time(hit.at))))),
    tokens(answer.pieces), omitted(answer.omitted), answer.notices.map((each) => nothing(each)),
  ];
}

async function ask() {
  const task = byId("task").value.trim(), most = Number(byId("max").value);
  history.replaceState(null, "", address("/context", { task }));
  const look = async (body, limit) => shown(await post("/page/context", { task, ...body }), limit);
  await Promise.all([
    section("context", () => look({ max_tokens: most }, most)),
    section("injection", () => look({ is_hook: true }, task ? 500 : 2000)),
  ]);
}

/** What hooks added within a day, with the beginnings of the memories. */
async function log() {
  const { injections } = await get("/injections");
  if (!injections.length) return nothing("No hook has added anything within a day.");
  const known = await memoriesOf([...new Set(injections.flatMap((each) => each.ids))].slice(0, 100));
  return el("ul", { class: "list" }, injections.map((each) => el("li", {}, time(each.at), " ", quiet(`to conversation ${each.conversation.slice(0, 6)}`),
    el("ul", {}, each.ids.map((id) => el("li", {}, linkTo(id, known)))))));
}

byId("form").addEventListener("submit", (event) => { event.preventDefault(); attempt(ask); });
byId("max").addEventListener("input", () => fill(byId("max-shown"), `${byId("max").value} tokens`));
byId("max").addEventListener("change", () => attempt(ask));
section("log", log);
section("searches", async () => {
  const found = await get("/retrievals");
  if (!found.searches) return nothing("None is logged.");
  return [
    el("p", {}, `${found.searches} searches since `, time(found.first), `; ${Math.round(found.nothing * 100)} % found nothing, ${Math.round(found.followed * 100)} % were followed by a use.`),
    el("ul", { class: "list" }, found.most_found.slice(0, 10).map((each) => el("li", { dir: "auto" }, Array.isArray(each) ? each.join(" · ") : Object.values(each).join(" · ")))),
  ];
});
byId("task").value = parameters.get("task") ?? "";
if (parameters.has("task")) attempt(ask);
else for (const id of ["context", "injection"]) fill(byId(id), nothing("Show says it; without a prompt, for the start of a session."));
byId("task").focus();
