"use strict";
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
