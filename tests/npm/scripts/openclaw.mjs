// OpenClaw's hooks around a model, called as OpenClaw calls them: each line on stdin is a turn, each on stdout what its model saw.
import { createInterface } from "node:readline";
import plugin from "holdfast-memory/openclaw";

let runs = 0;

function started(pluginConfig, warnings) {
  const hooks = {};
  const logger = { warn: (text) => warnings.push(text) };
  plugin.register({ pluginConfig, logger, on: (name, handler) => (hooks[name] = handler) });
  return hooks;
}

async function turn({ address, apiKey, text, user, conversation, key, fail, settings, context }) {
  const warnings = [];
  const { read, write, ...more } = settings ?? {};
  const config = { baseURL: address, apiKey, users: { [`test:${user}`]: user }, read, write, ...more };
  const hooks = started(config, warnings);
  const ctx = { runId: `run-${process.pid}-${(runs += 1)}`, sessionKey: conversation, messageProvider: "test", trigger: "user", ...(user ? { senderId: user } : {}), ...context };
  const asked = { prompt: `[Mon 10:00] ${text}`, currentUserMessage: text, currentUserMessageId: key, messages: [] };
  const added = (await hooks.before_prompt_build(asked, ctx)) ?? {};
  const seen = [added.appendSystemContext, added.prependContext, text].filter(Boolean);
  const reply = { role: "assistant", content: [{ type: "text", text: `noted: ${text}` }] };
  await hooks.agent_end({ runId: ctx.runId, messages: fail ? [] : [reply], success: !fail }, ctx);
  return fail ? { failed: "no model" } : { seen: [seen], reply: `noted: ${text}`, errors: warnings };
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await turn(JSON.parse(line)).catch((error) => ({ failed: error.message }))));
}
