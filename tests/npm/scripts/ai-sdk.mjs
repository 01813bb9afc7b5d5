// One scenario with the AI SDK: node ai-sdk.mjs chat|responses SCENARIO.  Prints what the program got, as JSON.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [api, scenario] = process.argv.slice(2);
const openai = createOpenAI({
  baseURL: process.env.HOLDFAST_URL + "/v1",
  apiKey: process.env.HOLDFAST_KEY,
  headers: { "X-Memory-User": "ana", "X-Memory-Conversation": "c" },
});
const model = api === "chat" ? openai.chat("m-1") : openai("m-1"); // the default speaks responses
const maxRetries = scenario === "retry" ? 2 : 0;
const hello = [{ role: "user", content: "I live in Porto." }];
const weather = tool({
  description: "Return the weather of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => "sunny in " + city,
});

const scenarios = {
  plain: async () => ({ text: (await generateText({ model, maxRetries, messages: hello })).text }),
  retry: async () => ({ text: (await generateText({ model, maxRetries, messages: hello })).text }),
  async stream() {
    const words = [];
    for await (const word of streamText({ model, maxRetries, messages: hello }).textStream) words.push(word);
    return { words };
  },
  async cancel() {
    const words = [];
    const stop = new AbortController();
    const stream = streamText({ model, maxRetries, messages: hello, abortSignal: stop.signal });
    for await (const word of stream.textStream) if (words.push(word) === 5) stop.abort();
    return { words };
  },
  async tools() {
    const messages = [{ role: "user", content: "How is the weather in Porto?" }];
    const done = await generateText({ model, maxRetries, messages, tools: { weather }, stopWhen: stepCountIs(3) });
    return { text: done.text };
  },
  async turns() {
    const first = await generateText({ model, maxRetries, messages: hello });
    const messages = [...hello, ...first.response.messages, { role: "user", content: "Where do I live?" }];
    const second = await generateText({ model, maxRetries, messages });
    return { texts: [first.text, second.text] };
  },
  async error() {
    try {
      await generateText({ model, maxRetries, messages: hello });
      return {};
    } catch (error) {
      return { status: error.statusCode, kind: error.name, code: error.data?.error?.code };
    }
  },
};

console.log(JSON.stringify(await scenarios[scenario]()));
