#pragma once

#include <string_view>

namespace tandem::app::console {

inline constexpr std::string_view kScript = R"page("use strict";
const $ = id => document.getElementById(id);
const EXPLAIN = {
  stale_map: "It has not adopted the published map. It still admits what the old map gave it.",
  unreachable: "Its admin endpoint does not answer. What it does is not known.",
  owns_unpublished: "It owns what this store never gave it. Another publisher, or a map laid by hand.",
  draining: "It is letting rooms go, evenly spaced. Nothing to do but wait.",
  identity_mismatch: "The host behind this endpoint has another name than the map gives it.",
  fetch_failing: "It cannot fetch the map. It keeps the last one it had.",
};
let state = null, edits = [], base = null, draft = null, seen = null;

function say(text, good) { $("alert").textContent = text; $("alert").classList.toggle("good", !!good); }

function row(cells) {
  const tr = document.createElement("tr");
  for (const cell of cells) {
    const td = document.createElement("td");
    if (typeof cell === "number") { td.className = "number"; td.textContent = cell; }
    else if (cell instanceof Node) td.append(cell);
    else td.textContent = cell;
    tr.append(td);
  }
  return tr;
}

function button(text, label, action) {
  const b = document.createElement("button");
  b.type = "button"; b.textContent = text; b.setAttribute("aria-label", label); b.addEventListener("click", action);
  return b;
}

async function call(path, body) {
  const answer = await fetch("api/" + path, body === undefined ? {} :
    { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const result = await answer.json();
  if (!answer.ok) throw new Error(result.message || answer.statusText);
  return result;
}

function named(host, hosts) {
  const span = document.createElement("span"), swatch = document.createElement("span");
  swatch.className = "swatch"; swatch.style.background = hue(host, hosts);
  span.append(swatch, host);
  return span;
}

const span = m => m.low === m.high ? String(m.low) : `${m.low}-${m.high}`;

function showHosts() {
  const hosts = state.ranges.map(r => r.host).filter((h, i, all) => all.indexOf(h) === i);
  const fleet = new Map(state.fleet.hosts.map(h => [h.host, h]));
  const rows = state.hosts.map(h => ({ ...h, ...(fleet.get(h.host) || {}) }));
  for (const h of fleet.values()) if (!hosts.includes(h.host)) rows.push({ ...h, buckets: 0, arcs: 0 });
  $("hosts").replaceChildren(...rows.map(h => {
    const observed = h.nobody ? "nobody serves these" : !("observed" in h) ? "no --admin" : !h.observed ? "no answer"
      : `version ${h.observed.version}, ${h.observed.rooms} rooms` + (h.observed.draining_rooms ? `, ${h.observed.draining_rooms} draining` : "");
    const list = document.createElement("span");
    for (const d of h.divergences || []) {
      const line = document.createElement("div");
      line.className = "divergence" + (d.overdue || d.code !== "draining" ? "" : " soft");
      line.textContent = `${d.code}: ${d.message}. ${EXPLAIN[d.code] || ""}` + (d.overdue ? " It lasts longer than it should." : "");
      list.append(line);
    }
    if (h.observed && !(h.divergences || []).length) list.textContent = "agrees";
    return row([named(h.host, hosts), h.buckets, h.arcs, observed, list]);
  }));
  $("warnings").replaceChildren(...state.warnings.map(w => {
    const li = document.createElement("li"); li.textContent = `${w.code}: ${w.message}`; return li;
  }));
  for (const [select, empty] of [["remove", false], ["into", true]]) {
    const element = select === "into" ? $("remove").elements.into : $("remove").elements.host, kept = element.value;
    element.replaceChildren(...(empty ? [new Option("its neighbours", "")] : []), ...hosts.map(h => new Option(h, h)));
    if ([...element.options].some(o => o.value === kept)) element.value = kept;
  }
  $("known-hosts").replaceChildren(...hosts.map(h => new Option(h, h)));
}

function draw() {
  const moves = draft ? draft.results[0].moves : [];
  const ranges = draft ? draft.ranges : merged(state.ranges);
  drawRing($("ring"), state.ranges, ranges, moves, [`version ${state.version}`, draft ? "with a draft" : `${state.hosts.filter(h => !h.nobody).length} hosts`], addEdit);
}

function merged(ranges) {
  const out = [];
  for (const r of ranges) {
    const last = out[out.length - 1];
    if (last && last.host === r.host) last.high = r.high; else out.push({ ...r });
  }
  return out;
}

function showDraft() {
  const result = draft && draft.results[0];
  $("edits").replaceChildren(...edits.map(e => {
    const li = document.createElement("li");
    li.textContent = e.op + (e.host ? " " + e.host : "") + ("low" in e ? ` ${e.low}-${e.high}` : "") + (e.version !== undefined ? ` to version ${e.version}` : "");
    return li;
  }));
  for (const id of ["undo", "discard"]) $(id).disabled = !edits.length;
  $("review").disabled = !result || !result.moves.length;
  $("moves-table").hidden = !result || !result.moves.length;
  if (!result) { $("forecast").textContent = "No draft: the ring shows what is published."; return; }
  $("moves").replaceChildren(...result.moves.slice(0, 200).map(m => row([span(m), m.high - m.low + 1, m.from, m.to])));
  $("forecast").textContent = !result.moves.length ? "The draft changes no bucket." :
    `Moves ${result.moved_buckets} buckets (${(result.moved_buckets / 655.36).toFixed(1)} % of the ring); rooms affected: ` +
    `${result.rooms_affected === null ? "unknown" : result.rooms_affected}; converges in ${result.convergence_seconds.toFixed(1)} s and one poll.` +
    (result.moved_buckets > 16384 ? " That is more than a quarter of the ring: smaller parts disturb fewer rooms at a time." : "");
}

async function preview() {
  if (!edits.length) { draft = null; base = null; }
  else draft = await call("preview", { base, edits });
  showDraft(); draw();
}

async function addEdit(edit) {
  if (base === null) base = state.version;
  edits.push(edit);
  try { await preview(); say(""); }
  catch (error) { edits.pop(); if (!edits.length) base = null; say(error.message); draw(); }
}

async function refresh() {
  try {
    state = await call("state");
    $("published").textContent = `version ${state.version}` + (state.at ? `, published ${state.at} by ${state.by}` : "");
    $("store").textContent = state.store;
    document.title = `Tandem map, version ${state.version}`;
    showHosts();
    if (base !== null && base !== state.version) say(`Version ${state.version} was published meanwhile: this draft was made from ${base} and will lose. Discard it and edit again.`);
    if (state.version !== seen) { seen = state.version; draw(); await history(); }
  } catch (error) { say("The console does not answer: " + error.message); }
}

async function history() {
  const { history: entries } = await call("history");
  $("history").replaceChildren(...entries.map(e => {
    const actions = document.createElement("span");
    if (e.version > 1) actions.append(button("Diff", `Show what version ${e.version} changed`, () => diff(e.version - 1, e.version)));
    if (e.version !== state.version) actions.append(" ", button("Roll forward to it", `Draft the content of version ${e.version} as the next version`, () => { edits = []; base = null; addEdit({ op: "rollback", version: e.version }); }));
    return row([e.version, e.at, e.by, e.action, e.moved_buckets, e.message, actions]);
  }));
}

async function diff(from, to) {
  try {
    const d = await call(`diff/${from}/${to}`);
    const title = document.createElement("h3"), list = document.createElement("ul");
    title.textContent = `From version ${from} to ${to}: ${d.moved_buckets} buckets`;
    list.replaceChildren(...d.moves.slice(0, 200).map(m => { const li = document.createElement("li"); li.textContent = `${span(m)} from ${m.from} to ${m.to}`; return li; }));
    $("diff").replaceChildren(title, list);
  } catch (error) { say(error.message); }
}

const number = text => text.trim() === "" ? null : Number(text);
const FORMS = {
  add: f => ({ op: "add", host: f.host.value.trim(), at: number(f.at.value), buckets: number(f.buckets.value) }),
  move: f => ({ op: "move", low: number(f.low.value), high: number(f.high.value), host: f.host.value.trim(), new: f.new.checked }),
  remove: f => ({ op: "remove", host: f.host.value, into: f.into.value || null }),
  rebalance: () => ({ op: "rebalance" }),
};
for (const [id, edit] of Object.entries(FORMS))
  $(id).addEventListener("submit", event => { event.preventDefault(); addEdit(edit(event.target.elements)); });
$("undo").addEventListener("click", () => { edits.pop(); preview().catch(error => say(error.message)); });
$("discard").addEventListener("click", () => { edits = []; say(""); preview().catch(error => say(error.message)); });
$("review").addEventListener("click", () => {
  const r = draft.results[0];
  $("confirm-title").textContent = `Publish version ${base + 1}?`;
  $("confirm-text").textContent = $("forecast").textContent + " " + Object.entries(r.hosts).filter(([, c]) => c.before !== c.after).map(([h, c]) => `${h}: ${c.before} to ${c.after}`).join(", ") + ".";
  $("confirm").showModal(); $("cancel").focus();
});
$("confirm").addEventListener("close", async () => {
  if ($("confirm").returnValue !== "publish") return;
  $("confirm").returnValue = "";
  say($("two-phase").checked ? "Publishing in two phases; this takes up to two polls." : "Publishing.", true);
  try {
    const done = await call("publish", { base, edits, two_phase: $("two-phase").checked, message: $("message").value });
    const last = done.results[done.results.length - 1];
    edits = []; base = null; draft = null; $("message").value = "";
    showDraft(); await refresh();
    say(last.published ? `Published version ${last.version}.` : "Nothing to do.", true);
  } catch (error) { say(error.message); refresh(); }
});
(async () => { await refresh(); if (state) { showDraft(); draw(); } setInterval(refresh, 3000); })();
)page";

}  // namespace tandem::app::console
