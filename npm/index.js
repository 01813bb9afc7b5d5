/** The error of a request that a Holdfast server refused; `code` is from the list of its documentation. */
export class HoldfastError extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `the server answered ${status}`);
    this.name = "HoldfastError";
    this.status = status;
    this.code = problem.code ?? "";
    this.hint = problem.hint ?? "";
  }
}

/** A client for a Holdfast server. */
export class Holdfast {
  constructor({ baseURL, apiKey, bot, subject, timeoutMs = 10_000, fetch = globalThis.fetch }) {
    if (!baseURL || !apiKey) throw new TypeError("name the server and its key: new Holdfast({ baseURL, apiKey })");
    this.baseURL = baseURL.replace(/\/+(v1\/*)?$/, "");
    Object.assign(this, { apiKey, bot, subject, timeoutMs, fetch });
  }

  /** A conversation of a user. */
  conversation(id, { user, bot = this.bot, subject = this.subject } = {}) {
    if (!user) throw new TypeError("it is not known whose memory this is: pass { user }");
    if (!id) throw new TypeError("the conversation has no id");
    return new Conversation(this, `${userPath(user)}/conversations/${encodeURIComponent(id)}`, { bot, subject });
  }

  /** What is known of a user, the newest pages first. */
  async facts(user, { bot = this.bot, subject = this.subject, limit = 100 } = {}) {
    return (await this.request("GET", `${userPath(user)}/facts`, { query: { bot, subject, limit } })).data;
  }

  /** Search a user's memory, best first. */
  search(user, query, { bot = this.bot, subject = this.subject, limit = 10 } = {}) {
    return this.request("POST", `${userPath(user)}/search`, { query: { bot, subject }, body: { query, limit } });
  }

  /** Send any other request; `path` is one of the server's reference. */
  async request(method, path, { query = {}, body, idempotencyKey, signal } = {}) {
    const url = new URL(this.baseURL + path);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
    const headers = { authorization: `Bearer ${this.apiKey}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey;
    const limit = AbortSignal.timeout(this.timeoutMs);
    const ends = Date.now() + this.timeoutMs;
    const sent = {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal && AbortSignal.any ? AbortSignal.any([signal, limit]) : (signal ?? limit),
    };
    let answer = await this.fetch.call(globalThis, url, sent);
    while (answer.status === 429) {
      // Refused before anything was done, so that sending it again is safe; longer than the time limit is not waited.
      const waitMs = 1000 * Math.max(1, Number(answer.headers.get("retry-after")) || 1);
      if (Date.now() + waitMs >= ends || sent.signal.aborted) break;
      await answer.body?.cancel();
      await pause(waitMs, sent.signal);
      answer = await this.fetch.call(globalThis, url, sent);
    }
    const text = await answer.text();
    if (!answer.ok) throw new HoldfastError(answer.status, asObject(text));
    return text ? JSON.parse(text) : undefined;
  }
}

/** One conversation: context before a reply, messages after it. */
export class Conversation {
  constructor(memory, path, query) {
    this.memory = memory;
    this.path = path;
    this.query = query;
  }

  /** What the model should see now: `messages` in OpenAI's shape, the first `stable_messages` of which seldom change. */
  context(query, { budgetTokens, system } = {}) {
    const body = { query: query ?? null };
    if (budgetTokens !== undefined) body.budget_tokens = budgetTokens;
    if (system !== undefined) body.system = system;
    return this.memory.request("POST", `${this.path}/context`, { query: this.query, body });
  }

  /** Store messages in order; those of one `idempotencyKey` are stored once. */
  record(messages, { idempotencyKey } = {}) {
    const body = { messages };
    return this.memory.request("POST", `${this.path}/messages`, { query: this.query, body, idempotencyKey });
  }

  /** The stored messages, oldest first; with `last`, the last so many. */
  async messages({ last } = {}) {
    return (await this.memory.request("GET", `${this.path}/messages`, { query: { ...this.query, last } })).data;
  }

  /** End the conversation for now, so that its rest can be summarized. */
  end() {
    return this.memory.request("POST", `${this.path}/end`, { query: this.query });
  }
}

/** Wait so long, or until the signal aborts. */
function pause(waitMs, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, waitMs);
    signal.addEventListener("abort", stop, { once: true });
  });
}

function userPath(user) {
  return `/v1/users/${encodeURIComponent(user)}`;
}

function asObject(text) {
  try {
    const found = JSON.parse(text);
    return found && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}
