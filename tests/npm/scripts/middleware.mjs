// An AI SDK program with the middleware: each line on stdin is a turn, each line on stdout what its model saw and replied.
import { createInterface } from "node:readline";
import { generateText, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { Holdfast } from "holdfast-memory";
import { memoryMiddleware } from "holdfast-memory/ai-sdk";
import { z } from "zod";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that repeats the last words of the user; `calls`: it first asks for a tool. */
function parrot({ fail, breaks, calls, endless }, seen) {
  const reply = (prompt) => {
    seen.push(prompt.flatMap(({ content }) => (typeof content === "string" ? [content] : content.map((part) => part.text ?? part.type))));
    if (fail) throw new Error("no model");
    if (calls && seen.length === 1) {
      return [{ type: "text", text: "Let me look." }, { type: "tool-call", toolCallId: "t1", toolName: "clock", input: "{}" }];
    }
    const said = prompt.filter(({ role }) => role === "user").flatMap(({ content }) => content.map(({ text }) => text));
    return [{ type: "text", text: `noted: ${said.at(-1)}` }];
  };
  const finishReason = (content) => ({ unified: content.at(-1).type === "text" ? "stop" : "tool-calls", raw: undefined });
  return {
    specificationVersion: "v3",
    provider: "test",
    modelId: "parrot",
    supportedUrls: {},
    async doGenerate({ prompt }) {
      const content = reply(prompt);
      return { content, finishReason: finishReason(content), usage, warnings: [] };
    },
    async doStream({ prompt, abortSignal }) {
      const content = reply(prompt);
      async function* parts() {
        yield { type: "stream-start", warnings: [] };
        for (const part of content) {
          if (part.type !== "text") yield part;
          else {
            yield { type: "text-start", id: "1" };
            for (const delta of part.text.split(/(?<= )/)) yield { type: "text-delta", id: "1", delta };
            for (let n = 0; endless && n < 500 && !abortSignal.aborted; n += 1) {
              await new Promise((resolve) => setTimeout(resolve, 10));
              yield { type: "text-delta", id: "1", delta: " more" };
            }
            if (endless) throw abortSignal.reason;
            if (breaks) return yield { type: "error", error: new Error("overloaded") };
            yield { type: "text-end", id: "1" };
          }
        }
        yield { type: "finish", usage, finishReason: finishReason(content) };
      }
      return { stream: ReadableStream.from(parts()) };
    },
  };
}

const clock = tool({ description: "Return the time.", inputSchema: z.object({}), execute: async () => "noon" });

async function turn({ address, apiKey, text, history = [], stream = false, calls = false, stop = false, fail = false, breaks = false, ...options }) {
  const seen = [];
  const memory = new Holdfast({ baseURL: address, apiKey });
  const errors = [];
  const middleware = memoryMiddleware(memory, { ...options, onError: (error) => errors.push(error.code ?? error.message) });
  const model = wrapLanguageModel({ model: parrot({ fail, breaks, calls, endless: stop }, seen), middleware });
  const abort = new AbortController();
  const request = {
    model,
    maxRetries: 0,
    system: "You cook.",
    messages: [...history, { role: "user", content: text }],
    abortSignal: abort.signal,
    ...(calls ? { tools: { clock }, stopWhen: stepCountIs(3) } : {}),
  };
  if (!stream) {
    const done = await generateText(request);
    return { seen, errors, text: done.text, messages: done.response.messages };
  }
  const heard = [];
  let failure;
  const answer = streamText({ ...request, onError: ({ error }) => (failure = error) });
  for await (const word of answer.textStream) if (heard.push(word) === 4 && stop) abort.abort();
  if (failure && !stop && !breaks) throw failure;
  return { seen, errors, text: heard.join("") };
}

for await (const line of createInterface({ input: process.stdin })) {
  let told;
  try {
    told = await turn(JSON.parse(line));
  } catch (error) {
    told = { failed: error.message };
  }
  console.log(JSON.stringify(told));
}
