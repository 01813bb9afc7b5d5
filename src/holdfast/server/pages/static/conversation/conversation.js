// The page of one conversation: arrow keys over the coverage, and choosing a chunk without a reload.
import { act, announce, notice, put, say } from "./sections.js";

let shown = location.search;
let left = ""; // the block that Escape goes back to
let touched = 0; // when a key or the pointer was last pressed
const strip = () => document.querySelector(".strip");

// The block in the row above or below that lies over the same place.
function across(from, by) {
  const rows = [...strip().querySelectorAll("tr")].filter((row) => row.querySelector(".chunk"));
  const row = rows[rows.indexOf(from.closest("tr")) + by];
  if (!row) return null;
  const box = from.getBoundingClientRect();
  const middle = by > 0 ? box.left + 1 : (box.left + box.right) / 2;
  const blocks = [...row.querySelectorAll(".chunk")];
  return blocks.find((one) => one.getBoundingClientRect().right >= middle) ?? blocks.at(-1);
}

// Of all blocks one alone is reached by Tab: the chosen one, else the last that had the focus, else the first.
function rove(to) {
  const blocks = [...(strip()?.querySelectorAll(".chunk") ?? [])];
  const one = to ?? blocks.find((b) => b.hasAttribute("aria-current")) ?? document.getElementById(left) ?? blocks[0];
  for (const block of blocks) block.tabIndex = block === one ? 0 : -1;
}

document.addEventListener("focusin", (event) => {
  const block = event.target.closest?.(".strip .chunk");
  if (block) rove(block);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || !event.target.closest?.("#chunk") || event.target.closest("details.confirm[open]")) return;
  document.getElementById(left)?.focus();
});

document.addEventListener("holdfast:section", (event) => {
  if (event.detail.id === "coverage") rove();
});

document.addEventListener("keydown", (event) => {
  const block = event.target.closest?.(".strip .chunk");
  if (!block || event.ctrlKey || event.metaKey || event.altKey) return;
  const row = [...block.closest("tr").querySelectorAll(".chunk")];
  const rtl = getComputedStyle(block).direction === "rtl" ? -1 : 1;
  const at = row.indexOf(block);
  const to = {
    ArrowRight: () => row[at + rtl],
    ArrowLeft: () => row[at - rtl],
    Home: () => row[0],
    End: () => row.at(-1),
    ArrowUp: () => across(block, -1),
    ArrowDown: () => across(block, 1),
  }[event.key];
  if (!to) return;
  event.preventDefault();
  to()?.focus();
});

for (const kind of ["keydown", "pointerdown"]) addEventListener(kind, (event) => (touched = event.timeStamp), true);

function go(address, ids, focus) {
  return act(() => choose(address, ids, focus));
}

// Put sections of another address of this page in place, and move the focus to what was asked for: a message, or a part.
async function choose(address, ids, focus) {
  const since = performance.now();
  const answer = await fetch(address, { headers: { "X-Fragment": ids }, credentials: "same-origin" });
  if (answer.redirected || !answer.ok) throw new Error(String(answer.status));
  history.pushState(null, "", address);
  shown = location.search;
  put(await answer.text(), { force: true });
  light();
  const line = lineOf(new URL(address, location.href).hash);
  if (line) return reach(line);
  const box = document.getElementById(focus);
  const goesOn = document.dispatchEvent(new CustomEvent("holdfast:show", { cancelable: true, detail: { box, since } }));
  if (!goesOn) return; // another tab was picked meanwhile
  box?.querySelector("details")?.setAttribute("open", "");
  box?.scrollIntoView({ block: "nearest" });
  const heading = box?.querySelector("h2, h3");
  if (heading && touched <= since) { // who has gone on meanwhile keeps the focus
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
  left = document.querySelector(".strip .chunk[aria-current]")?.id ?? left;
  announce(heading?.textContent.trim() ?? "");
}

// The line of the transcript that "#m12" names; of forgotten messages the next one that is there.
function lineOf(hash) {
  const seq = Number(/^#m(\d+)$/.exec(hash)?.[1]);
  if (!seq) return null;
  return document.getElementById(`m${seq}`) ?? [...document.querySelectorAll(".said")].find((one) => Number(one.dataset.seq) >= seq) ?? null;
}

function reach(line, focus = true) {
  line.scrollIntoView({ block: "start" });
  for (const other of document.querySelectorAll(".said.reached")) other.classList.remove("reached");
  line.classList.add("reached");
  if (focus) (line.querySelector(".number") ?? line).focus({ preventScroll: true });
}

// The address of a message.
export function place(seq) {
  const address = new URL(location.href);
  address.searchParams.set("at", seq);
  address.searchParams.delete("chunk");
  address.hash = `m${seq}`;
  return String(address);
}

// Go to a message; the focus goes along, or stays where it is.
export async function jump(seq, { focus }) {
  const here = document.getElementById(`m${seq}`);
  if (here) return reach(here, focus);
  const held = document.activeElement?.id;
  await go(place(seq), "map transcript coverage", "transcript");
  if (!focus && held) document.getElementById(held)?.focus({ preventScroll: true });
}

// The messages of the chosen chunk stand out in the transcript.
function light() {
  const chosen = document.querySelector(".strip .chunk[aria-current]");
  for (const line of document.querySelectorAll(".said")) {
    const seq = Number(line.dataset.seq);
    line.classList.toggle("lit", Boolean(chosen) && seq >= Number(chosen.dataset.first) && seq <= Number(chosen.dataset.last));
  }
}

document.addEventListener("click", (event) => {
  const soft = event.target.closest?.("a[data-soft], .strip a.chunk[id], .summaries a, .versions a");
  if (!soft || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const ids = soft.dataset.soft ?? "chunk coverage transcript rebuild";
  event.preventDefault();
  const line = ids.includes("transcript") ? lineOf(soft.hash) : null;
  if (line?.id === soft.hash.slice(1) && !new URL(soft.href).searchParams.has("whole")) {
    history.pushState(null, "", soft.href);
    shown = location.search;
    reach(line);
    return;
  }
  go(soft.href, ids, ids.split(" ")[0]).catch(() => location.assign(soft.href));
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  const id = form.dataset.softForm;
  if (!id) return;
  event.preventDefault();
  const address = `${location.pathname}?${new URLSearchParams(new FormData(form))}`;
  go(address, id, id.split(" ")[0]).catch(() => notice(say("not_reached", "The server could not be reached. Try again."), "bad"));
});

// Back and forward; a mere jump within the page comes here, too.
addEventListener("popstate", () => {
  if (location.search !== shown) location.reload();
});

// On a narrow screen the blocks of the messages below are brought into view.
function show() {
  const box = strip();
  const chosen = box?.querySelector(".chunk[aria-current]") ?? box?.querySelector(".scale .here");
  if (chosen) box.scrollLeft += chosen.getBoundingClientRect().left - box.getBoundingClientRect().left - box.clientWidth / 3;
}

light();
show();
rove();
