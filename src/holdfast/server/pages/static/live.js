// Live pages: one event stream a page, and sections that are fetched again when an event concerns them.  Where the
// stream cannot be had, every section is asked for each five seconds.
import { announce, held, idle, refresh, say, titleOf } from "./sections.js";

const KINDS = [
  "message.added", "message.edited", "message.rated", "message.deleted", "fact.added", "fact.waiting", "fact.confirmed", "fact.changed", "fact.replaced",
  "fact.corrected", "fact.ended", "fact.forgotten", "summary.made", "summary.stale", "summary.removed",
  "episode.added", "episode.removed", "job.queued", "job.running", "job.progress", "job.done", "job.failed", "job.cancelled",
  "consent.changed", "prompt.changed", "subject.changed", "erased",
];
const GATHER_MS = 250;
const POLL_MS = 5000;

const stream = document.body.dataset.events;
const due = new Set();
let timer = 0;
let poll = 0;
let heard = Date.now();

const sections = () => [...document.querySelectorAll("section[data-live]")];

function concerned(kind) {
  return sections().filter((s) => s.dataset.live.split(/\s+/).some((start) => start && kind.startsWith(start)));
}

function connected(yes) {
  const banner = document.getElementById("connection");
  if (!banner) return;
  const was = banner.hidden;
  banner.hidden = yes;
  if (!yes) {
    const at = new Date(heard).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
    banner.querySelector("span").textContent = say("offline", "Not connected. Last update at {time}; trying to reconnect.", { time: at });
    if (was) announce(say("lost", "Connection lost"));
  } else if (!was) {
    announce(say("again", "Connected again"));
  }
}

// Sections that show how far something is are asked for again until they show it no more; then everything is.
let watched = 0;
let wasBusy = false;
function watch() {
  clearTimeout(watched);
  const busy = [...document.querySelectorAll("section[data-poll]")];
  if (busy.length) watched = setTimeout(() => want(busy), wasBusy ? 1500 : 300); // most are there soon
  else if (wasBusy) everything();
  wasBusy = busy.length > 0;
}

async function fetchDue() {
  timer = 0;
  if (!idle()) return; // when that is done, it goes on
  const ids = [...due];
  due.clear();
  try {
    const changed = await refresh(ids);
    heard = Date.now();
    connected(true);
    for (const section of changed) announce(say("section", "{title} changed", { title: titleOf(section) }));
    watch();
  } catch (error) {
    if (error.name === "AbortError") {
      for (const id of ids) due.add(id);
    } else {
      connected(false);
      if (!poll) poll = setInterval(everything, POLL_MS);
    }
  }
  soon();
}

function soon() {
  if (due.size && !timer) timer = setTimeout(fetchDue, GATHER_MS);
}

function want(list) {
  for (const section of list) due.add(section.id);
  soon();
}

// Who leaves a field, takes back a question or lets a button go sees what came meanwhile.
function release() {
  setTimeout(() => {
    for (const id of held) due.add(id);
    held.clear();
    soon();
  });
}

function everything() {
  want(sections());
}

function listen() {
  const source = new EventSource(stream);
  const onEvent = (event) => {
    heard = Date.now();
    want(concerned(event.type));
  };
  for (const kind of KINDS) source.addEventListener(kind, onEvent);
  source.addEventListener("reset", everything);
  source.addEventListener("open", () => {
    if (poll) everything(); // what happened meanwhile
    clearInterval(poll);
    poll = 0;
    connected(true);
  });
  source.addEventListener("error", () => {
    if (!poll) poll = setInterval(everything, POLL_MS);
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 30000);
  });
}

// "5 min ago" stays true while the page is open.
const SPANS = [["d", 86400], ["h", 3600], ["min", 60]];
function agree() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    const span = SPANS.find(([, each]) => seconds >= each);
    if (span && seconds < 30 * 86400) time.textContent = say(span[0], `{count} ${span[0]} ago`, { count: Math.floor(seconds / span[1]) });
  }
}
setInterval(agree, 30000);

watch();
document.addEventListener("holdfast:section", watch);
document.addEventListener("holdfast:idle", soon);
document.addEventListener("holdfast:released", release);
document.addEventListener("focusout", release);
document.addEventListener("toggle", release, true);

if (stream !== undefined && sections().length) {
  if (stream) listen();
  else poll = setInterval(everything, POLL_MS);
  addEventListener("offline", () => connected(false));
  addEventListener("online", everything);
}
