// Sections of a page, fetched again and put in place: what live.js and forms.js share.

const waiting = new Set();
let lastSaid = 0;
let going = 0;
let acting = 0;
let asking = null;
let pressed = false;

// Sections that changed while somebody was in the middle of something in them.
export const held = new Set();

// Tell a screen reader, politely, at most once in five seconds; what comes meanwhile is told together.
export function announce(words) {
  const box = document.getElementById("announcer");
  if (!box || !words) return;
  const idle = waiting.size === 0;
  waiting.add(words);
  if (!idle) return;
  setTimeout(() => {
    box.textContent = [...waiting].join(". ");
    waiting.clear();
    lastSaid = Date.now();
  }, Math.max(50, lastSaid + 5000 - Date.now()));
}

// A sentence at the top of the page, in view wherever one is, for a while.
const ICONS = {
  ok: "M5 12.500l4.500 4.500L19 7.500",
  warn: "M12 4L2.500 20h19z M12 10v4.500 M12 17.500h.01",
  bad: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z M9 9l6 6 M15 9l-6 6",
};

function icon(kind) {
  const name = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(name, "svg");
  const path = document.createElementNS(name, "path");
  svg.setAttribute("class", "icon");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[kind]);
  svg.append(path);
  return svg;
}

// kind: ok, or warn and bad for what went wrong, which stays until the next notice.
export function notice(words, kind = "ok") {
  let box = document.getElementById("notice");
  if (!box) {
    box = document.createElement("p");
    box.id = "notice";
    document.getElementById("main").prepend(box);
  }
  box.className = kind === "ok" ? "notice" : `notice ${kind}`;
  box.setAttribute("role", kind === "ok" ? "status" : "alert");
  box.replaceChildren(icon(kind), document.createElement("span"));
  box.querySelector("span").textContent = words;
  clearTimeout(going);
  if (kind === "ok") going = setTimeout(() => box.remove(), 12000);
}

// Whether somebody is in the middle of something that a new section would take away.
function busy(section) {
  const active = document.activeElement;
  const typing = section.contains(active) && active.matches("input:not([type=hidden]), textarea, select");
  return pressed || typing || section.querySelector("details.confirm[open], form[data-dirty], .undo") !== null;
}

// While a button is pressed nothing moves: a section that was replaced or pushed down between press and release would
// take the click with it.
addEventListener("pointerdown", (event) => (pressed = event.button === 0)); // a menu that opens may swallow the release
for (const end of ["pointerup", "pointercancel", "blur"]) {
  addEventListener(end, () => {
    if (!pressed) return;
    setTimeout(() => { // after the click that follows
      pressed = false;
      document.dispatchEvent(new CustomEvent("holdfast:released"));
    });
  });
}

function keyOf(element, at) {
  return element.id || element.dataset.keep || element.querySelector("summary")?.textContent.trim() || String(at);
}

// What users unfolded and where they stood stays as it was.
function carryOver(old, fresh) {
  const open = new Map([...old.querySelectorAll("details")].map((d, at) => [keyOf(d, at), d.open]));
  [...fresh.querySelectorAll("details:not(.confirm)")].forEach((d, at) => {
    const was = open.get(keyOf(d, at));
    if (was !== undefined) d.open = was;
  });
  const scrolled = old.querySelector("[data-scroll]")?.scrollLeft;
  const active = old.contains(document.activeElement) ? document.activeElement : null;
  const path = active?.id ? `#${CSS.escape(active.id)}` : active?.dataset.keep ? `[data-keep="${CSS.escape(active.dataset.keep)}"]` : "";
  return () => {
    if (scrolled) fresh.querySelector("[data-scroll]")?.scrollTo(scrolled, 0);
    if (path) fresh.querySelector(path)?.focus({ preventScroll: true });
    else if (active) fresh.querySelector("summary, a, button")?.focus({ preventScroll: true });
  };
}

// Whether nothing has changed; that time has passed is no change.
function same(old, fresh) {
  const plain = (section) => {
    if (!section.querySelector("time[data-ago]")) return section;
    const copy = section.cloneNode(true);
    for (const time of copy.querySelectorAll("time[data-ago]")) time.textContent = "";
    return copy;
  };
  return plain(old).isEqualNode(plain(fresh));
}

// Put the sections in *html* in the place of those with the same ids; returns the ids that changed.
export function put(html, { force = false } = {}) {
  const changed = [];
  const parsed = new DOMParser().parseFromString(html, "text/html");
  for (const fresh of parsed.querySelectorAll("section[id]")) {
    const old = document.getElementById(fresh.id);
    if (!old || old.parentElement?.closest("section[id]")?.dataset.replaced) continue;
    if (!force && busy(old)) {
      held.add(fresh.id);
      continue;
    }
    held.delete(fresh.id);
    const taken = document.importNode(fresh, true);
    const settle = carryOver(old, taken);
    if (same(old, taken)) continue;
    old.replaceWith(taken);
    settle();
    taken.classList.add("flash");
    taken.addEventListener("animationend", () => taken.classList.remove("flash"), { once: true });
    document.dispatchEvent(new CustomEvent("holdfast:section", { detail: taken }));
    changed.push(taken);
  }
  return changed;
}

export function titleOf(section) {
  const heading = document.getElementById(section.getAttribute("aria-labelledby"));
  return heading ? heading.textContent.trim().replace(/\s+/g, " ") : "";
}

// What a user does goes first: an answer on its way for the page as it was is let go, so that it cannot take the
// place of a newer one, and no other is asked for before *work* is done.
export async function act(work) {
  acting += 1;
  asking?.abort();
  try {
    return await work();
  } finally {
    acting -= 1;
    if (!acting) document.dispatchEvent(new CustomEvent("holdfast:idle"));
  }
}

export function idle() {
  return acting === 0 && asking === null;
}

// Ask for sections of this page again, one question at a time.  Throws when the server cannot be reached, and an
// AbortError when a user did something meanwhile.
export async function refresh(ids) {
  const question = new AbortController();
  const late = setTimeout(() => question.abort(new Error("no answer")), 30000);
  asking = question;
  try {
    const answer = await fetch(location.href, {
      headers: { "X-Fragment": ids.join(" ") },
      credentials: "same-origin",
      signal: question.signal,
    });
    if (answer.redirected) {
      document.dispatchEvent(new CustomEvent("holdfast:signed-out"));
      location.reload();
      return [];
    }
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    return put(await answer.text());
  } finally {
    clearTimeout(late);
    asking = null;
  }
}

// What scripts say is in the language of the page, where the page brings the words.
const spoken = JSON.parse(document.body.dataset.words || "{}");
export const say = (name, usual, values = {}) =>
  Object.entries(values).reduce((words, [hole, value]) => words.replace(`{${hole}}`, () => value), spoken[name] || usual);
