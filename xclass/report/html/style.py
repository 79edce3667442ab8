"""Define the style sheet and the script of the page; the page is complete without the script."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --card: #f6f8fa; --ink: #1b2430; --muted: #56616e;
  --line: #cfd6de; --first: #1f6fb2; --second: #b8560f; --link: #14609f; }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #12171d; --card: #1a2129; --ink: #e6eaee;
  --muted: #a4afba; --line: #3a4551; --first: #63aeee; --second: #f0a05a; --link: #86c1f5; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI",
  "Liberation Sans", "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 8px; top: 8px; background: var(--paper); padding: 8px 12px; z-index: 2; }
header, main, footer { max-width: 1080px; margin: 0 auto; padding: 0 16px; }
header { padding-top: 28px; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 44px 0 8px; padding-top: 12px; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 24px 0 6px; }
p, ul, ol { margin: 8px 0; max-width: 75ch; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, button:focus-visible, [tabindex]:focus-visible {
  outline: 3px solid var(--first); outline-offset: 2px; border-radius: 3px; }
.lead, caption, figcaption, .note { color: var(--muted); }
.legend { margin: 8px 0; max-width: 75ch; font-size: .92rem; }
.legend div { display: grid; grid-template-columns: minmax(0, 11em) minmax(0, 1fr); gap: 12px; padding: 2px 0; }
.legend dt { font-weight: 600; }
.legend dd { margin: 0; }
nav ul { display: flex; flex-wrap: wrap; gap: 4px 18px; list-style: none; padding: 0; max-width: none; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 20px 0 12px;
  padding: 0; }
.tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.tiles dt { color: var(--muted); font-size: .85rem; }
.tiles dd { margin: 0; font-size: 1.45rem; line-height: 1.3; font-weight: 600; }
.tiles dd small { display: block; font-size: .8rem; font-weight: 400; color: var(--muted); }
figure { margin: 12px 0; }
svg.figure { display: block; width: 100%; max-width: 520px; height: auto; font-family: inherit; }
table { border-collapse: collapse; margin: 12px 0; width: 100%; font-size: .92rem; }
caption { text-align: left; padding: 4px 0; font-size: .88rem; }
th, td { text-align: left; vertical-align: top; padding: 6px 10px 6px 0; border-bottom: 1px solid var(--line); }
thead th { font-weight: 600; color: var(--muted); }
tbody th { font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
thead th, thead .number { white-space: normal; overflow-wrap: normal; vertical-align: bottom; }
tbody th { min-width: 5.5em; }
.place { white-space: nowrap; }
.share { white-space: nowrap; }
td.wide { min-width: 17em; }
.bar { display: inline-block; width: 90px; height: 10px; margin-right: 8px; background: var(--line); border-radius: 5px;
  overflow: hidden; vertical-align: baseline; }
.bar span { display: block; height: 100%; background: var(--first); }
details { margin: 8px 0; }
summary { cursor: pointer; padding: 3px 0; }
.class { border: 1px solid var(--line); border-radius: 8px; padding: 4px 16px; margin: 8px 0;
  background: var(--card); }
.class > summary h3 { display: inline; margin: 0 8px 0 0; }
.class > summary { padding: 5px 0; }
.findings { margin: 6px 0; padding-left: 1.2em; }
.findings li { margin: 4px 0; }
.findings b { font-weight: 600; }
code, .line { font-family: ui-monospace, "Liberation Mono", "DejaVu Sans Mono", monospace; font-size: .86em; }
.line { display: block; background: var(--paper); border: 1px solid var(--line); border-radius: 5px; padding: 5px 8px;
  margin: 4px 0; }
.buttons:not([hidden]) { display: flex; align-items: center; flex-wrap: wrap; gap: 8px; margin: 8px 0; }
button { font: inherit; color: var(--ink); background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: 6px 14px; min-width: 44px; min-height: 40px; cursor: pointer; }
.tree { overflow: auto; max-height: 80vh; border: 1px solid var(--line); border-radius: 8px; padding: 12px; }
svg.tree-drawing { display: block; height: auto; font: 12px system-ui, "Liberation Sans", "DejaVu Sans", sans-serif; }
.tree-drawing .edge { fill: none; stroke: var(--muted); stroke-width: 1.2; }
.tree-drawing .paper { fill: var(--paper); }
.tree-drawing .node { fill: var(--second); stroke: var(--muted); }
.tree-drawing text { fill: var(--ink); }
.tree-drawing .name { font-weight: 600; }
.tree-drawing .more { font-size: 11px; }
.outline, .outline ul { list-style: none; padding-left: 18px; max-width: none; border-left: 1px solid var(--line); }
.outline p { margin: 2px 0; font-size: .9rem; }
footer { color: var(--muted); padding-top: 24px; padding-bottom: 40px; font-size: .9rem; }
@media (max-width: 900px) { td.wide { min-width: 10em; } .bar { width: 44px; } tbody th { min-width: 4.5em; } }
@media screen and (min-width: 900px) { .pair { display: grid; gap: 32px;
  grid-template-columns: minmax(0, 520px) minmax(0, 1fr); align-items: start; } }
@media screen and (max-width: 640px) {
  table:not(.figures) thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  table:not(.figures) :is(caption, tbody, tr, tbody th, td), table:not(.figures) { display: block; }
  table:not(.figures) tbody tr { border-bottom: 1px solid var(--line); padding: 8px 0; }
  table:not(.figures) :is(tbody th, td) { border: 0; padding: 2px 0; text-align: left; white-space: normal; }
  table:not(.figures) tbody td { display: grid; grid-template-columns: 9.5em minmax(0, 1fr); gap: 8px; }
  table:not(.figures) td::before { content: attr(data-name); color: var(--muted); }
  table:not(.figures) tbody td.wide { grid-template-columns: minmax(0, 1fr); gap: 0; min-width: 0; }
  table.figures { font-size: .78rem; }
  table.figures :is(th, td) { padding-right: 5px; min-width: 0; }
  .legend div { grid-template-columns: minmax(0, 1fr); gap: 0; }
  h1 { font-size: 1.4rem; }
  .class { padding: 4px 12px; }
}
@media print {
  @page { margin: 14mm; }
  td.wide { min-width: 9em; }
  .bar { width: 40px; }
  tbody th { min-width: 4em; }
  body { font-size: 10.5pt; }
  nav, .buttons, .skip { display: none; }
  h2, h3 { break-after: avoid; }
  figure, .class, tr, .tiles div { break-inside: avoid; }
  .tree { overflow: visible; max-height: none; border: 0; padding: 0; }
  svg.tree-drawing { width: 100% !important; }
  details::details-content { content-visibility: visible; block-size: auto; }
  a { color: inherit; text-decoration: none; }
  .bar, .bar span, .tree-drawing { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

SCRIPT = """
"use strict";
for (const box of document.querySelectorAll(".tree")) {
  const drawing = box.querySelector("svg");
  const natural = Number(drawing.dataset.width);
  const state = document.getElementById("zoom-state");
  let scale = 1;  // 1 is the original size
  const fit = () => Math.min(1, (box.clientWidth - 26) / natural);
  const show = (wanted) => {
    const before = scale;
    const x = box.scrollLeft + box.clientWidth / 2, y = box.scrollTop + box.clientHeight / 2;
    scale = Math.max(Math.min(0.2, fit()), Math.min(4, wanted));
    drawing.style.width = natural * scale + "px";
    box.scrollLeft = x * scale / before - box.clientWidth / 2;
    box.scrollTop = y * scale / before - box.clientHeight / 2;
    state.textContent = Math.round(100 * scale) + " %";
  };
  const acts = { in: () => show(scale * 1.25), out: () => show(scale / 1.25), fit: () => show(fit()),
    full: () => show(1) };
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => acts[button.dataset.zoom]());
  }
  box.addEventListener("keydown", (event) => {
    const act = { "+": acts.in, "=": acts.in, "-": acts.out, "0": acts.fit, "1": acts.full }[event.key];
    if (act && !event.ctrlKey && !event.metaKey && !event.altKey) { act(); event.preventDefault(); }
  });
  document.querySelector(".buttons").hidden = false;
  show(fit());
  box.scrollTop = (box.scrollHeight - box.clientHeight) / 2;  // to the root
}
if (matchMedia("(max-width: 640px)").matches) {
  for (const one of document.querySelectorAll("details.same")) one.open = false;
}
const unfold = (hash) => {  // the box of a class that a link leads to
  const box = document.getElementById(hash.slice(1));
  if (box && box.matches("details")) { box.open = true; box.scrollIntoView(); }
};
for (const link of document.querySelectorAll('a[href^="#class-"]')) {
  link.addEventListener("click", () => unfold(link.hash));
}
unfold(location.hash);
const opened = [];
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details:not([open])")) { one.open = true; opened.push(one); }
});
addEventListener("afterprint", () => { for (const one of opened.splice(0)) one.open = false; });
"""
