// The client for the server: what it stores and gets, as JSON.
import { Holdfast } from "holdfast-memory";

const memory = new Holdfast({ baseURL: process.env.HOLDFAST_URL + "/v1/", apiKey: process.env.HOLDFAST_KEY });
const chat = memory.conversation("web/42 ü", { user: "ana/é" });
const said = [{ role: "user", content: "I am a vegetarian." }, { role: "assistant", content: "Noted!", meta: { n: 1 } }];

const receipts = [];
for (let n = 0; n < 3; n += 1) receipts.push(await chat.record(said, { idempotencyKey: "turn 1" }));
const context = await chat.context("What may I cook?", { budgetTokens: 800 });
const other = await memory.conversation("c", { user: "bo" }).context("What may I cook?");
await chat.end();

async function refused(call) {
  try {
    await call();
  } catch ({ name, status, code, message }) {
    return { name, status, code, message };
  }
}

console.log(
  JSON.stringify({
    receipts,
    context,
    other,
    messages: await chat.messages(),
    last: await chat.messages({ last: 1 }),
    facts: await memory.facts("ana/é"),
    found: await memory.search("ana/é", "vegetarian"),
    reused: await refused(() => chat.record([{ role: "user", content: "else" }], { idempotencyKey: "turn 1" })),
    unknown: await refused(() => memory.request("GET", "/v1/users/bo/conversations/none")),
    unnamed: await refused(() => memory.conversation("c", {})),
    late: await refused(() => new Holdfast({ baseURL: process.env.SILENT_URL, apiKey: "k", timeoutMs: 50 }).facts("ana")),
  }),
);
