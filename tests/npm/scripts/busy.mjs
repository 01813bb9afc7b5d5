// More messages than the server takes at once, one after the other; then one of a client that has no time to wait.
import { Holdfast } from "holdfast-memory";

const where = { baseURL: process.env.HOLDFAST_URL, apiKey: process.env.HOLDFAST_KEY };
const chat = new Holdfast(where).conversation("c", { user: "ana" });
for (let n = 0; n < 8; n += 1) await chat.record([{ role: "user", content: `message ${n}` }]);

const hurried = new Holdfast({ ...where, timeoutMs: 900 });
const tries = Array.from({ length: 8 }, () => hurried.facts("ana").catch((error) => error.code));
console.log(JSON.stringify({ hurried: (await Promise.all(tries)).includes("too-often") }));
