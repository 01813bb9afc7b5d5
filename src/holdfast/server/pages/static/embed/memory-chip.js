// <holdfast-memory>: what was learned in the last exchange of a chat, with Undo, for pages of others.
//
//   <holdfast-memory server="https://memory.example" user="ana" conversation="web-42"></holdfast-memory>
//   chip.token = () => fetch("/memory-token").then((answer) => answer.text());   // the end user's own key
//   await chip.refresh({ first: 41, last: 42 });                                 // after each reply; or without a range
//
// Everything that comes from the memory is set as text; no markup of it is read.  Styles are adopted, not inline.

const WORDS = {
  updated: "Memory updated",
  title: "What I learned just now",
  said: "You said",
  again: "Said again",
  undo: "Undo",
  undone: "Undone",
  restore: "Restore",
  failed: "That did not work. Try again.",
};

const BY_HAND = "(by hand)"; // the conversation that keeps the words of facts written by hand

const STYLE = `
:host { display: inline-block; color-scheme: inherit; font: inherit; max-inline-size: 100%; }
:host([hidden]), [hidden] { display: none !important; }
button { font: inherit; min-block-size: 2rem; padding: 0.2rem 0.75rem; border: 1px solid GrayText; border-radius: 999px;
  background: Canvas; color: CanvasText; cursor: pointer; }
button:focus-visible { outline: 2px solid; outline-offset: 2px; }
.unseen { position: absolute; inline-size: 1px; block-size: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); }
.panel { margin-block-start: 0.5rem; padding: 0.75rem; border: 1px solid GrayText; border-radius: 10px;
  background: Canvas; color: CanvasText; max-inline-size: 28rem; overflow-wrap: anywhere; }
h2 { margin: 0 0 0.5rem; font-size: 1em; }
ul { margin: 0; padding: 0; list-style: none; }
li { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0.25rem 0.75rem;
  padding-block: 0.375rem; }
li > div { flex: 1 1 10rem; min-inline-size: 0; }
p { margin: 0; }
.quote { font-size: 0.875em; }
.undone .fact { text-decoration: line-through; }
`;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

class HoldfastMemory extends HTMLElement {
  #root = this.attachShadow({ mode: "open" });
  #chip = element("button", "", { type: "button", part: "chip", "aria-expanded": "false" });
  #status = element("span", "", { role: "status", class: "unseen" });
  #panel = element("div", undefined, { class: "panel", part: "panel", role: "group" });
  #asked = 0;
  words = { ...WORDS };
  token = "";

  constructor() {
    super();
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    this.#root.adoptedStyleSheets = [sheet];
    this.#chip.hidden = true;
    this.#panel.hidden = true;
    this.#root.append(this.#status, this.#chip, this.#panel);
    this.#chip.addEventListener("click", () => this.#open(this.#panel.hidden));
    this.#root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.#panel.hidden) return;
      event.stopPropagation();
      this.#open(false);
      this.#chip.focus();
    });
  }

  #open(yes) {
    this.#panel.hidden = !yes;
    this.#chip.setAttribute("aria-expanded", String(yes));
  }

  // Show what was learned from messages *first* to *last*; without a range, from the last two.  Returns the facts.
  async refresh({ first, last } = {}) {
    const turn = ++this.#asked;
    try {
      let range = { first, last: last ?? first };
      if (first === undefined) {
        const { data } = (await this.#ask("GET", `${this.#talk()}/messages`, { last: 2 })).body;
        range = { first: data[0]?.seq, last: data.at(-1)?.seq };
      }
      const found = range.first === undefined ? [] : await this.#learned(range);
      if (turn === this.#asked) this.#show(found, range);
      return found;
    } catch (error) {
      if (turn === this.#asked) this.#show([], {});
      this.dispatchEvent(new CustomEvent("holdfast-error", { detail: error }));
      return [];
    }
  }

  #user() {
    return `/v1/users/${encodeURIComponent(this.getAttribute("user") ?? "")}`;
  }

  #talk() {
    return `${this.#user()}/conversations/${encodeURIComponent(this.getAttribute("conversation") ?? "")}`;
  }

  async #ask(method, path, query = {}, headers = {}) {
    const address = new URL(path, this.getAttribute("server") || location.origin);
    const bot = this.getAttribute("bot");
    for (const [name, value] of Object.entries({ ...query, ...(bot ? { bot } : {}) })) address.searchParams.set(name, value);
    const key = typeof this.token === "function" ? await this.token() : this.token;
    const answer = await fetch(address, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...headers },
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
    });
    if (!answer.ok) throw new Error(`Holdfast answered ${answer.status}`);
    return { body: await answer.json(), version: answer.headers.get("ETag") };
  }

  // The facts from a range of messages, each with its version, so that Undo changes what is shown and nothing newer.
  // One that was known before, and was only said again here, is not new: to undo it would delete older knowledge.
  async #learned({ first, last }) {
    const { body } = await this.#ask("GET", `${this.#user()}/facts`, {
      conversation: this.getAttribute("conversation"),
      start_seq: first,
      end_seq: last,
    });
    const here = this.getAttribute("conversation");
    const one = async (fact) => {
      const { body, version } = await this.#ask("GET", this.#fact(fact));
      const told = body.evidence.filter((one) => one.conversation === here && one.seq >= first && one.seq <= last);
      const since = Math.min(...told.map(({ at }) => Date.parse(at)));
      const byHand = (one) => one.conversation === BY_HAND && Date.parse(one.at) >= since; // it names these messages
      return { ...fact, version, isNew: body.evidence.every((one) => told.includes(one) || byHand(one)) };
    };
    return Promise.all(body.data.map(one));
  }

  #fact(fact) {
    return `${this.#user()}/facts/${encodeURIComponent(fact.id)}`;
  }

  #show(facts, range) {
    this.#open(false);
    this.#chip.hidden = facts.length === 0;
    this.#chip.textContent = `${this.words.updated}: ${facts.length}`;
    this.#status.textContent = facts.length ? this.#chip.textContent : "";
    const list = element("ul");
    for (const fact of facts) list.append(this.#line(fact, range));
    this.#panel.setAttribute("aria-label", this.words.title);
    this.#panel.replaceChildren(element("h2", this.words.title), list);
  }

  #line(fact, range) {
    const line = element("li");
    const words = element("div");
    words.append(element("p", fact.text, { class: "fact", dir: "auto" }));
    const conversation = this.getAttribute("conversation");
    const said = fact.evidence.find((one) => one.role === "user" && one.conversation === conversation && one.seq >= range.first && one.seq <= range.last);
    if (said) {
      const quote = element("p", `${this.words.said}: `, { class: "quote" });
      quote.append(element("q", said.quote, { dir: "auto" }));
      words.append(quote);
    }
    if (!fact.isNew) {
      line.append(words, element("p", this.words.again, { class: "quote" }));
      return line;
    }
    line.append(words, ...this.#undo(line, fact));
    return line;
  }

  // The button that takes a fact back, and puts it in place again, and the line that says how that went.
  #undo(line, fact) {
    const button = element("button", "", { type: "button", part: "undo" });
    const failed = element("p", "", { role: "status" });
    const show = (undone) => {
      line.classList.toggle("undone", undone);
      button.textContent = undone ? this.words.restore : this.words.undo;
      button.setAttribute("aria-label", `${button.textContent}: ${fact.text}`);
    };
    let undone = false;
    let version = fact.version;
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        const call = undone ? "restore" : "never-true";
        const change = (await this.#ask("POST", `${this.#fact(fact)}/${call}`, {}, version ? { "If-Match": version } : {})).body;
        if (change.op === "rejected") throw new Error(change.reason);
        undone = !undone;
        version = ""; // from here on it is this page that changes it
        show(undone);
        failed.textContent = undone ? this.words.undone : "";
        this.dispatchEvent(new CustomEvent(undone ? "holdfast-undone" : "holdfast-restored", { detail: fact, bubbles: true, composed: true }));
      } catch (error) {
        failed.textContent = this.words.failed;
        this.dispatchEvent(new CustomEvent("holdfast-error", { detail: error }));
      } finally {
        button.disabled = false;
        button.focus();
      }
    });
    show(false);
    return [button, failed];
  }
}

if (!customElements.get("holdfast-memory")) customElements.define("holdfast-memory", HoldfastMemory);
export { HoldfastMemory };
