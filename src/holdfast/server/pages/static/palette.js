// The command palette: Ctrl K or Cmd K, or the button; a dialog over the page that `find.py` answers.
import { say } from "./sections.js";

const opener = document.getElementById("find");
const dialog = document.getElementById("palette");
const field = dialog?.querySelector("input");
const results = dialog?.querySelector("[data-results]");
const status = dialog?.querySelector("[role=status]");
let asked = null;
let timer = 0;

async function ask() {
  asked?.abort();
  const question = new AbortController();
  asked = question;
  const address = new URL(opener.href);
  address.searchParams.set("q", field.value);
  try {
    const answer = await fetch(address, { headers: { "X-Fragment": "found" }, credentials: "same-origin", signal: question.signal });
    if (answer.redirected || !answer.ok) throw new Error(String(answer.status));
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("found");
    results.replaceChildren(...[...found.childNodes].map((node) => document.importNode(node, true)));
    const number = Number(found.dataset.count);
    status.textContent = number === 1 ? say("result", "1 result") : say("results", "{count} results").replace("{count}", number);
  } catch (error) {
    if (error.name !== "AbortError") status.textContent = say("unreachable", "The server could not be reached.");
  }
}

function open() {
  if (dialog.open) return;
  dialog.showModal();
  field.select();
  ask();
}

function move(by) {
  const stops = [field, ...results.querySelectorAll("a")];
  const at = stops.indexOf(document.activeElement);
  stops[(at + by + stops.length) % stops.length].focus();
}

if (opener && dialog) {
  opener.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 120);
  });
  dialog.addEventListener("submit", async (event) => {
    if (event.target.method === "dialog") return;
    event.preventDefault();
    clearTimeout(timer);
    await ask(); // what was typed last, not what is shown still
    results.querySelector("a")?.click();
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "Escape") dialog.close(); // a search field would only be emptied
    else if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else return;
    event.preventDefault();
  });
  // A place on this very page: the dialog goes, and the focus follows the jump.
  dialog.addEventListener("click", (event) => {
    const to = event.target.closest("a");
    if (event.target === dialog || (to && to.pathname === location.pathname && to.hash)) dialog.close();
    if (!to?.hash || to.pathname !== location.pathname) return;
    const target = document.getElementById(decodeURIComponent(to.hash.slice(1)));
    if (!target) return;
    if (to.search !== location.search) { // the link would load the page anew to show that fact alone
      event.preventDefault();
      location.hash = to.hash;
    }
    target.tabIndex = -1;
    setTimeout(() => target.focus());
  });
}
