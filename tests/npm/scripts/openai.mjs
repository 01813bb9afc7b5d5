// One scenario with OpenAI's client: node openai.mjs chat|responses SCENARIO.  Prints what the client got, as JSON.
import OpenAI from "openai";

const [api, scenario] = process.argv.slice(2);
const headers = { "X-Memory-User": "ana", "X-Memory-Conversation": "c" };
const client = new OpenAI({
  baseURL: process.env.HOLDFAST_URL + "/v1",
  apiKey: process.env.HOLDFAST_KEY,
  defaultHeaders: headers,
  maxRetries: scenario === "retry" ? 2 : 0,
});
const model = "m-1";
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const weather = { name: "weather", description: "Return the weather of a city.", parameters };

const chat = {
  async ask(messages, more = {}) {
    const answer = await client.chat.completions.create({ model, messages, ...more });
    return { text: answer.choices[0].message.content, said: [answer.choices[0].message], answer };
  },
  async stream(messages, heard) {
    const answer = await client.chat.completions.create({ model, messages, stream: true });
    for await (const chunk of answer) {
      if (chunk.choices[0].delta.content && heard(chunk.choices[0].delta.content)) break; // ends the request, too
    }
  },
  async tools(messages) {
    const first = await chat.ask(messages, { tools: [{ type: "function", function: weather }] });
    const call = first.said[0].tool_calls[0];
    const result = { role: "tool", tool_call_id: call.id, content: "sunny in " + JSON.parse(call.function.arguments).city };
    return chat.ask([...messages, ...first.said, result], { tools: [{ type: "function", function: weather }] });
  },
};

const responses = {
  async ask(input, more = {}) {
    const answer = await client.responses.create({ model, input, ...more });
    return { text: answer.output_text, said: answer.output, answer };
  },
  async stream(input, heard) {
    const answer = await client.responses.create({ model, input, stream: true });
    for await (const event of answer) {
      if (event.type === "response.output_text.delta" && heard(event.delta)) break;
    }
  },
  async tools(input) {
    const tools = [{ type: "function", strict: false, ...weather }];
    const first = await responses.ask(input, { tools });
    const call = first.said.find((item) => item.type === "function_call");
    const output = "sunny in " + JSON.parse(call.arguments).city;
    return responses.ask([...input, ...first.said, { type: "function_call_output", call_id: call.call_id, output }], { tools });
  },
};

const use = { chat, responses }[api];
const hello = [{ role: "user", content: "I live in Porto." }];

const scenarios = {
  plain: async () => ({ text: (await use.ask(hello)).text }),
  retry: async () => ({ text: (await use.ask(hello)).text }),
  async stream() {
    const words = [];
    await use.stream(hello, (word) => void words.push(word));
    return { words };
  },
  async cancel() {
    const words = [];
    await use.stream(hello, (word) => words.push(word) === 5);
    return { words };
  },
  tools: async () => ({ text: (await use.tools([{ role: "user", content: "How is the weather in Porto?" }])).text }),
  async turns() {
    const first = await use.ask(hello);
    const second = await use.ask([...hello, ...first.said, { role: "user", content: "Where do I live?" }]);
    return { texts: [first.text, second.text] };
  },
  async error() {
    try {
      await use.ask(hello);
      return {};
    } catch (error) {
      return { status: error.status, kind: error.constructor.name, code: error.code };
    }
  },
};

console.log(JSON.stringify(await scenarios[scenario]()));
