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
