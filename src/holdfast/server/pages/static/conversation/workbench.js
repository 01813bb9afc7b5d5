// The page of one conversation: tabs, the map, and going to a message without a reload.
import { jump, place } from "./conversation.js";
import { announce, say } from "./sections.js";

// Tabs.  The parts are whole without scripts; here all but one are hidden.
const list = document.querySelector("[data-tabs]");
const tabs = [...list.querySelectorAll("a")];
const partOf = (tab) => document.getElementById(tab.getAttribute("href").slice(1));

list.setAttribute("role", "tablist");
for (const tab of tabs) {
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", partOf(tab).id);
  partOf(tab).setAttribute("role", "tabpanel");
  partOf(tab).setAttribute("aria-labelledby", tab.id);
}

function select(chosen) {
  for (const tab of tabs) {
    const on = tab === chosen;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    partOf(tab).hidden = !on;
  }
}

// The tab in which an element is, if it is in one.
function tabOf(element) {
  const part = element?.closest(".part");
  return tabs.find((tab) => partOf(tab) === part);
}

function byHash() {
  return tabOf(location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null);
}

let picked = 0; // when somebody picked a tab

function pick(tab) {
  picked = performance.now();
  select(tab);
  tab.focus();
}

list.addEventListener("click", (event) => {
  const tab = event.target.closest("[role=tab]");
  if (!tab || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  pick(tab);
});

list.addEventListener("keydown", (event) => {
  const at = tabs.indexOf(event.target);
  if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  const by = getComputedStyle(list).direction === "rtl" ? -1 : 1;
  const to = { ArrowRight: at + by, ArrowLeft: at - by, Home: 0, End: tabs.length - 1 }[event.key];
  if (event.key === " ") event.target.click();
  else if (to === undefined) return;
  else {
    pick(tabs[(to + tabs.length) % tabs.length]);
  }
  event.preventDefault();
});

select(byHash() ?? tabs.find((tab) => tab.id === `tab-${list.dataset.tabs}`));
addEventListener("hashchange", () => {
  const tab = byHash();
  if (tab) select(tab);
});
// What is shown on purpose is brought to the front, unless a tab was picked after it was asked for.
document.addEventListener("holdfast:show", (event) => {
  if (picked > event.detail.since) return event.preventDefault();
  const tab = tabOf(event.detail.box);
  if (tab) select(tab);
});

// The map.  Its slider has the number of a message; dragging tells where one would be, letting go goes there.
const slider = () => document.getElementById("map-at");
const count = (number) => number.toLocaleString(document.documentElement.lang, { numberingSystem: "latn" });
let wanted = 0;

// The map zooms around the message at hand; the slider covers what is shown.
let zoom = 1;

function frame() {
  const at = slider();
  if (!at) return;
  const all = Number(at.dataset.all);
  const span = Math.min(all, Math.max(20, Math.ceil(all / zoom)));
  const start = Math.round(Math.min(Math.max(0, Number(at.value) - span / 2), all - span));
  at.parentElement.querySelector("svg").setAttribute("viewBox", `${start} 0 ${span} 40`);
  const seq = at.value;
  [at.min, at.max] = [start + 1, start + span];
  at.value = seq;
  const buttons = document.querySelectorAll("[data-zoom]");
  for (const button of buttons) {
    button.hidden = all <= 40;
    button.disabled = button.dataset.zoom === "out" ? zoom === 1 : span <= 20;
  }
}

function move(seq) {
  const at = slider();
  [at.min, at.max] = [1, at.dataset.all];
  at.value = seq;
  frame();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-zoom]");
  if (!button) return;
  zoom = button.dataset.zoom === "in" ? zoom * 4 : Math.max(1, zoom / 4);
  frame();
  const at = slider();
  const shown = { first: count(Number(at.min)), last: count(Number(at.max)) };
  announce(zoom === 1 ? say("whole", "The whole conversation") : say("range", "Messages {first} to {last}", shown));
});
document.addEventListener("holdfast:section", (event) => event.detail.id === "map" && frame());

function tell(seq) {
  const now = document.getElementById("map-now");
  if (now) now.textContent = say("message", "Message {number}", { number: count(seq) });
}

function go(seq, focus) {
  clearTimeout(wanted);
  jump(seq, { focus }).then(() => {
    frame();
    tell(seq);
    if (!focus) announce(say("message", "Message {number}", { number: count(seq) }));
  }, () => location.assign(place(seq)));
}

document.addEventListener("input", (event) => {
  if (event.target.id !== "map-at") return;
  event.stopPropagation(); // it is no field that somebody is typing in
  tell(Number(event.target.value));
}, true);

// Arrow keys come one after the other; the last one counts.
document.addEventListener("change", (event) => {
  if (event.target.id !== "map-at") return;
  const seq = Number(event.target.value);
  clearTimeout(wanted);
  wanted = setTimeout(() => go(seq, false), 250);
});

document.addEventListener("keydown", (event) => {
  if (event.target.id !== "map-at" || event.key !== "Enter") return;
  event.preventDefault();
  go(Number(event.target.value), true);
});

document.addEventListener("submit", (event) => {
  const field = event.target.matches("[data-map], [data-jump]") ? event.target.elements.at : null;
  if (!field?.value) return;
  event.preventDefault();
  go(Number(field.value), true);
});

// Where one reads is told on the map.
let due = false;
function follow() {
  due = false;
  const at = slider();
  if (!at || at === document.activeElement) return;
  const below = document.getElementById("map").getBoundingClientRect().bottom;
  const line = [...document.querySelectorAll("#transcript .said")].find((one) => one.getBoundingClientRect().bottom > below + 8);
  if (!line || line.getBoundingClientRect().top > innerHeight) return;
  move(line.dataset.seq);
  tell(Number(line.dataset.seq));
}
addEventListener("scroll", () => {
  if (!due) requestAnimationFrame(follow);
  due = true;
}, { passive: true });
frame();
