// Keyboard shortcuts.  Those of a single key can be turned off in the list that `?` or the footer opens.

const GO = { c: "/dashboard/conversations", p: "/dashboard/users", r: "/dashboard/recall", j: "/dashboard/jobs" };
const help = document.getElementById("help");
const box = document.getElementById("keys-on");
let on = true;
let after = "";

try {
  on = localStorage.getItem("holdfast-keys") !== "off";
} catch {
  // a browser that stores nothing has them
}

if (box) {
  box.checked = on;
  box.addEventListener("change", () => {
    on = box.checked;
    try {
      localStorage.setItem("holdfast-keys", on ? "on" : "off");
    } catch {
      // it holds for this page then
    }
  });
}

for (const button of document.querySelectorAll("[data-help]")) {
  button.hidden = false;
  button.addEventListener("click", () => help.showModal());
}

const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);
const handle = (row) => (row.matches("a, button, summary") ? row : row.querySelector("a, button, summary"));

function step(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  const target = handle(next);
  target?.focus();
  target?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (!on || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("input, textarea, select, [contenteditable], dialog[open]")) return;
  const before = after;
  after = "";
  if (before === "g" && GO[event.key]) {
    const there = [...document.querySelectorAll("nav a")].find((a) => a.getAttribute("href") === GO[event.key]);
    if (there) location.assign(there.href);
  } else if (event.key === "g") {
    after = "g";
    setTimeout(() => (after = ""), 1500);
  } else if (event.key === "/") {
    const search = document.querySelector("[data-search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "j" || event.key === "k") {
    step(event.key === "j" ? 1 : -1);
  } else if (event.key === "u") {
    document.querySelector("#said form:has([name=do][value=undo]) button")?.focus(); // Enter undoes
  } else if (event.key === "?") {
    help?.showModal();
  }
});
