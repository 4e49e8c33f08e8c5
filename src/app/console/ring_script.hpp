#pragma once

#include <string_view>

namespace tandem::app::console {

inline constexpr std::string_view kRingScript = R"page("use strict";
// The ring as a picture: the outer band is what is published, the inner one what the draft would make of it, its moved
// arcs over the old ones. Boundaries of the draft are sliders.
const RING = 65536, MIDDLE = 260;
const OUTER = [214, 172], INNER = [164, 138], SVG = "http://www.w3.org/2000/svg";

function hue(host, hosts) {
  if (host.endsWith(".invalid") || host === "invalid") return "#8a8a8a";
  const i = hosts.filter(h => !h.endsWith(".invalid")).indexOf(host);
  return `hsl(${(i * 137.5 + 210) % 360} 58% ${i % 2 ? 56 : 46}%)`;
}

function point(bucket, radius) {
  const angle = bucket / RING * 2 * Math.PI - Math.PI / 2;
  return [MIDDLE + radius * Math.cos(angle), MIDDLE + radius * Math.sin(angle)];
}

function shape(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function arc(low, high, [outer, inner], attributes) {
  const width = Math.min(high + 1 - low, RING - 0.001), end = low + width, large = width > RING / 2 ? 1 : 0;
  const [a, b, c, d] = [point(low, outer), point(end, outer), point(end, inner), point(low, inner)];
  const path = `M${a} A${outer} ${outer} 0 ${large} 1 ${b} L${c} A${inner} ${inner} 0 ${large} 0 ${d} Z`;
  return shape("path", { d: path, ...attributes });
}

function boundaries(ranges) {
  if (new Set(ranges.map(r => r.host)).size < 2) return [];
  return ranges.map((range, i) => ({ at: range.low, above: range, below: ranges[(i + ranges.length - 1) % ranges.length] }))
    .filter(b => b.above.host !== b.below.host);
}

// What a boundary moved by `by` buckets means: its neighbour grows over it. Nothing is ever dragged away whole.
function dragged(boundary, by, ranges) {
  const run = (index, step, host) => {
    let width = 0;
    for (let i = index, n = 0; n < ranges.length && ranges[i].host === host; n++, i = (i + step + ranges.length) % ranges.length)
      width += ranges[i].high - ranges[i].low + 1;
    return width;
  };
  const index = ranges.indexOf(boundary.above);
  const room = by > 0 ? run(index, 1, boundary.above.host) : run((index + ranges.length - 1) % ranges.length, -1, boundary.below.host);
  const count = Math.min(Math.abs(by), room - 1);
  if (count < 1) return null;
  const wrap = n => (n % RING + RING) % RING;
  return by > 0
    ? { op: "move", low: boundary.at, high: wrap(boundary.at + count - 1), host: boundary.below.host }
    : { op: "move", low: wrap(boundary.at - count), high: wrap(boundary.at - 1), host: boundary.above.host };
}

function drawRing(svg, published, drafted, moves, title, onMove) {
  const hosts = [...new Set([...published, ...drafted].map(r => r.host))];
  const held = document.activeElement && document.activeElement.getAttribute && document.activeElement.getAttribute("data-at");
  svg.replaceChildren();
  for (const r of published) {
    const part = arc(r.low, r.high, OUTER, { class: "arc", fill: hue(r.host, hosts) });
    part.append(shape("title", {}, `${r.host}: ${r.low}-${r.high}, ${r.high - r.low + 1} buckets`));
    svg.append(part);
  }
  if (moves.length) {
    for (const r of published) svg.append(arc(r.low, r.high, INNER, { class: "moved", fill: hue(r.host, hosts), opacity: 0.25 }));
    for (const m of moves) {
      const part = arc(m.low, m.high, INNER, { class: "moved", fill: hue(m.to, hosts) });
      part.append(shape("title", {}, `${m.low}-${m.high} would move from ${m.from} to ${m.to}`));
      svg.append(part);
    }
  }
  svg.append(shape("text", { x: MIDDLE, y: MIDDLE - 12, class: "big" }, title[0]), shape("text", { x: MIDDLE, y: MIDDLE + 20 }, title[1]));
  for (const quarter of [0, 16384, 32768, 49152]) {
    const [x, y] = point(quarter, 240);
    svg.append(shape("text", { x, y }, quarter));
  }
  for (const b of boundaries(drafted)) svg.append(handle(svg, b, drafted, onMove, held));
}

function handle(svg, boundary, ranges, onMove, held) {
  const [x, y] = point(boundary.at, 193);
  const knob = shape("circle", { class: "handle", cx: x, cy: y, r: 8, tabindex: 0, role: "slider", "data-at": boundary.at,
    "aria-label": `Boundary between ${boundary.below.host} and ${boundary.above.host}`,
    "aria-valuemin": 0, "aria-valuemax": RING - 1, "aria-valuenow": boundary.at, "aria-valuetext": `bucket ${boundary.at}` });
  let by = 0;
  const show = () => {
    const at = ((boundary.at + by) % RING + RING) % RING, [cx, cy] = point(at, 193);
    knob.setAttribute("cx", cx); knob.setAttribute("cy", cy);
    knob.setAttribute("aria-valuenow", at);
    knob.setAttribute("aria-valuetext", `bucket ${at}, moved by ${by}`);
  };
  const finish = () => { const edit = by && dragged(boundary, by, ranges); by = 0; show(); if (edit) onMove(edit); };
  knob.addEventListener("keydown", event => {
    const step = { ArrowRight: 64, ArrowUp: 64, ArrowLeft: -64, ArrowDown: -64, PageUp: 1024, PageDown: -1024 }[event.key];
    if (step) { by += event.shiftKey ? Math.sign(step) : step; show(); }
    else if (event.key === "Enter" || event.key === " ") finish();
    else if (event.key === "Escape") { by = 0; show(); }
    else return;
    event.preventDefault();
  });
  knob.addEventListener("pointerdown", event => {
    knob.setPointerCapture(event.pointerId); knob.classList.add("held"); knob.focus(); event.preventDefault();
  });
  knob.addEventListener("pointermove", event => {
    if (!knob.hasPointerCapture(event.pointerId)) return;
    const box = svg.getBoundingClientRect();
    const angle = Math.atan2(event.clientY - box.top - box.height / 2, event.clientX - box.left - box.width / 2) + Math.PI / 2;
    const bucket = Math.round((angle / (2 * Math.PI) + 1) * RING) % RING;
    by = ((bucket - boundary.at + RING * 1.5) % RING) - RING / 2;
    show();
  });
  knob.addEventListener("pointerup", event => { knob.releasePointerCapture(event.pointerId); knob.classList.remove("held"); finish(); });
  if (held !== null && held === String(boundary.at)) queueMicrotask(() => knob.focus());
  return knob;
}
)page";

}  // namespace tandem::app::console
