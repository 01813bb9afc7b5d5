// Forms that work without this file, made smoother: no reload, no double sending, a moment to take it back.
import { act, announce, notice, put, say } from "./sections.js";

// Send a form, follow the redirect, and put the sections that it names in place.
function send(form, submitter) {
  return act(() => post(form, submitter));
}

async function post(form, submitter) {
  const data = new URLSearchParams(new FormData(form, submitter));
  const target = submitter?.getAttribute("formaction") || form.getAttribute("action") || location.href;
  const ids = form.dataset.swap;
  lock(form, true);
  try {
    const answer = await fetch(target, {
      method: "POST",
      body: data,
      headers: ids ? { "X-Fragment": ids } : {},
      credentials: "same-origin",
      keepalive: data.toString().length < 60000, // it is done although the page is left
    });
    if (!ids || !answer.ok || new URL(answer.url).pathname === "/sign-in") {
      if (new URL(answer.url).pathname === "/sign-in") location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
      else if (answer.ok || answer.redirected) location.assign(answer.url);
      else await refused(answer);
      return;
    }
    stored((s) => s.removeItem(KEPT));
    put(await answer.text(), { force: true });
    const said = answer.headers.get("X-Notice");
    if (said) notice(decodeURIComponent(said));
  } catch {
    notice(say("unreachable", "The server could not be reached. Nothing was changed; try again."), "bad");
  } finally {
    lock(form, false);
  }
}

// A refusal says why; a conflict comes with the sections that show both sides, a wrong field with its form.
async function refused(answer) {
  const text = await answer.text();
  if ([409, 422].includes(answer.status) && put(text, { force: true }).length) {
    document.querySelector("details[open] [aria-invalid]")?.focus();
    return;
  }
  notice(reason(answer, text), "bad");
}

function reason(answer, text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const words = [...page.querySelectorAll(".entrance h1, .entrance p:not(.status-number, .actions)")];
  return words.map((e) => e.textContent.trim()).join(" ") || say("refused", "Refused ({status}).", { status: answer.status });
}

function lock(form, on) {
  form.toggleAttribute("data-sending", on);
  for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", String(on));
}

// In the place of what will go: a line with Undo, for some seconds; then it is sent.
function later(form, submitter) {
  const seconds = Number(form.dataset.undo);
  const item = form.closest("[data-undo-item]") ?? form;
  const line = document.createElement("div");
  line.className = "undo";
  line.setAttribute("role", "status");
  const words = document.createElement("span");
  words.textContent = form.dataset.undoText || say("soon", "This will be forgotten.");
  const back = document.createElement("button");
  back.type = "button";
  back.className = "button small";
  back.textContent = say("undo", "Undo");
  line.append(words, back);
  const place = item.matches("tr") ? row(item, line) : line;
  item.hidden = true;
  item.after(place);
  back.focus();
  const now = () => {
    removeEventListener("pagehide", now);
    clearTimeout(timer);
    place.remove();
    send(form, submitter);
  };
  const timer = setTimeout(now, seconds * 1000);
  addEventListener("pagehide", now);
  back.addEventListener("click", () => {
    removeEventListener("pagehide", now);
    clearTimeout(timer);
    place.remove();
    item.hidden = false;
    form.closest("details.confirm")?.removeAttribute("open");
    announce(say("kept", "Kept"));
  });
}

function row(item, line) {
  const tr = document.createElement("tr");
  const td = document.createElement("td");
  td.colSpan = item.cells.length;
  td.append(line);
  tr.append(td);
  return tr;
}

// What was typed is kept in this tab until the server has taken it: a session that ended does not lose it.
const KEPT = "holdfast-typed";
const ASKED = "holdfast-signed-in-again";
const typed = (form) => [...form.elements].filter((e) => e.matches("input:not([type=hidden], [type=password]), textarea") && e.name);
const hiddenOf = (form) => JSON.stringify([...form.querySelectorAll("input[type=hidden]:not([name=version])")].map((e) => [e.name, e.value]));

function stored(work) {
  try {
    return work(sessionStorage);
  } catch {
    return null; // a browser that stores nothing keeps nothing
  }
}

function keep(form) {
  if (location.pathname === "/sign-in") return;
  const fields = typed(form).map((e) => [e.name, e.value]);
  stored((s) => s.removeItem(KEPT));
  if (!fields.some(([, value]) => value)) return;
  stored((s) => s.setItem(KEPT, JSON.stringify({ path: location.pathname, form: hiddenOf(form), fields })));
}

function bringBack() {
  const signIn = location.pathname === "/sign-in";
  const kept = JSON.parse(stored((s) => s.getItem(KEPT)) ?? "null");
  if (!kept) return;
  if (signIn) {
    stored((s) => s.setItem(ASKED, "yes"));
    return;
  }
  const asked = stored((s) => s.getItem(ASKED));
  stored((s) => s.removeItem(KEPT));
  stored((s) => s.removeItem(ASKED));
  if (!asked || kept.path !== location.pathname) return;
  const form = [...document.forms].find((one) => one.method === "post" && hiddenOf(one) === kept.form);
  if (!form) return;
  for (let at = form.closest("details"); at; at = at.parentElement?.closest("details")) at.open = true;
  for (const [name, value] of kept.fields) {
    const field = typed(form).find((e) => e.name === name);
    if (field) field.value = value;
  }
  form.setAttribute("data-dirty", "");
  typed(form)[0]?.focus();
  notice(say("back", "Not saved yet: you had been signed out. Your text is back in its field."), "warn");
}

document.addEventListener("holdfast:signed-out", () => {
  const form = document.querySelector("form[method=post][data-dirty]");
  if (form) keep(form);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) return;
  keep(form);
  if (form.hasAttribute("data-sending")) {
    event.preventDefault();
  } else if (form.dataset.undo) {
    event.preventDefault();
    later(form, event.submitter);
  } else if (form.dataset.swap) {
    event.preventDefault();
    send(form, event.submitter);
  } else {
    setTimeout(() => lock(form, true)); // after the browser has taken the fields
  }
});

bringBack();

// Buttons that copy what stands beside them; where the browser keeps its clipboard to itself, the words are chosen.
for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
document.addEventListener("holdfast:section", (event) => {
  for (const button of event.detail.querySelectorAll("[data-copy]")) button.hidden = false;
});
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    notice(say("copied", "Copied."));
  } catch {
    notice(say("no_copy", "This browser does not let a page copy. Select the text and copy it by hand."), "warn");
  }
});

addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sending]")) lock(form, false);
});

document.addEventListener("input", (event) => event.target.form?.setAttribute("data-dirty", ""));

// What else would go, from the server, when the question is opened.
async function preview(place) {
  if (!place) return;
  const address = new URL(location.href);
  address.searchParams.set("preview", place.dataset.preview);
  const answer = await fetch(address, { credentials: "same-origin" }).catch(() => null);
  if (!answer?.ok || answer.redirected) return;
  place.textContent = await answer.text();
  place.hidden = !place.textContent;
}

// A question that was asked can be taken back, by the button, by Escape, or by asking another.
document.addEventListener("click", (event) => {
  const close = event.target.closest("[data-close]");
  if (close) shut(close.closest("details"));
});
document.addEventListener("keydown", (event) => {
  const open = event.target.closest?.("details.confirm[open]");
  if (event.key === "Escape" && open) shut(open);
});
document.addEventListener(
  "toggle",
  (event) => {
    if (!event.target.matches("details.confirm[open]")) return;
    for (const button of event.target.querySelectorAll("[data-close]")) button.hidden = false;
    for (const other of document.querySelectorAll("details.confirm[open]")) {
      if (other !== event.target) other.open = false;
    }
    event.target.querySelector("form input:not([type=hidden]), form textarea")?.focus();
    preview(event.target.querySelector("[data-preview][hidden]"));
  },
  true,
);

function shut(details) {
  details.open = false;
  details.querySelector("summary").focus();
}

// What folds out over the page folds in again.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.more[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// The lab's threshold: rows below it are hidden while it is moved; Ask keeps it.
document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-least]")) return;
  const least = Number(event.target.value);
  document.getElementById("least-now").textContent = least.toLocaleString(document.documentElement.lang, { minimumFractionDigits: 2, maximumFractionDigits: 2, numberingSystem: "latn" });
  for (const row of document.querySelectorAll("[data-relevance]")) row.hidden = Number(row.dataset.relevance) < least;
  const count = document.querySelector("#ranked [data-count]");
  if (count) count.textContent = document.querySelectorAll("[data-relevance]:not([hidden])").length;
});
