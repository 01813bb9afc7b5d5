import { Holdfast } from "./index.js";

/**
 * A plugin that gives OpenClaw a memory.
 *
 * What is known of the user goes behind the system prompt, what a message recalls before the message; neither is stored by
 * us again.  What the user says is stored before the model is asked, a reply when the run has ended.
 */
export default {
  id: "holdfast-memory",
  name: "Holdfast",
  description: "Conversation memory from a Holdfast server.",
  register(api) {
    const options = api.pluginConfig ?? {};
    const memory = new Holdfast({
      baseURL: options.baseURL ?? process.env.HOLDFAST_URL,
      apiKey: options.apiKey ?? process.env.HOLDFAST_KEY,
      bot: options.bot,
      timeoutMs: options.timeoutMs ?? 5_000, // a user waits: rather no memory than a wait
    });
    const warn = (error) => (api.logger?.warn ?? console.warn)(`holdfast: ${error.message}`);
    const turns = new Map(); // whose words are being answered, by the run

    /** Store what was said, once for each run; blocks of memory and commands in it are left out by the server. */
    async function tell({ user, conversation, key }, name, more) {
      const event = { hook_event_name: name, session_id: conversation, ...(key ? { turn_id: key } : {}), ...more };
      const path = `/v1/users/${encodeURIComponent(user)}/hooks`;
      await memory.request("POST", path, { query: { bot: memory.bot }, body: { event } });
    }

    api.on("before_prompt_build", async (event, ctx) => {
      const said = event.currentUserMessage ?? event.prompt;
      if (!said?.trim() || !isOfUser(ctx)) return;
      const turn = {
        user: userOf(ctx, options),
        conversation: ctx.sessionKey ?? ctx.sessionId ?? "default",
        key: event.currentUserMessageId ?? ctx.runId,
      };
      try {
        if (options.write !== false) {
          await tell(turn, "UserPromptSubmit", { prompt: said });
          remember(turns, runOf(event, ctx), turn);
        }
        if (options.read === false) return;
        const chat = memory.conversation(turn.conversation, { user: turn.user });
        const context = await chat.context(options.write === false ? said : null, { budgetTokens: options.budgetTokens });
        const known = context.messages.slice(0, context.stable_messages).map(({ content }) => content);
        const recalled = context.sections.filter(({ name, text }) => name === "recalled" && text).map(({ text }) => text);
        return {
          ...(known.length ? { appendSystemContext: known.join("\n\n") } : {}),
          ...(recalled.length ? { prependContext: recalled.join("\n\n") } : {}),
        };
      } catch (error) {
        warn(error); // a memory that fails must not cost the reply
      }
    });

    api.on("agent_end", async (event, ctx) => {
      const run = runOf(event, ctx);
      const turn = turns.get(run);
      turns.delete(run);
      const reply = turn && event.success ? lastReply(event.messages) : "";
      if (!reply) return;
      try {
        await tell(turn, "Stop", { last_assistant_message: reply });
      } catch (error) {
        warn(error);
      }
    });
  },
};

const MOST_RUNS = 1_000;

function remember(turns, run, turn) {
  turns.set(run, turn);
  if (turns.size > MOST_RUNS) turns.delete(turns.keys().next().value); // of runs that never ended
}

function runOf(event, ctx) {
  return ctx.runId ?? event.runId ?? ctx.sessionKey ?? ctx.sessionId;
}

/** Whether a user speaks: schedules, heartbeats and other agents say nothing of one. */
function isOfUser({ trigger, inputProvenance }) {
  if (inputProvenance?.kind && inputProvenance.kind !== "external_user") return false;
  return trigger === undefined || trigger === "user" || trigger === "manual";
}

/** Who speaks: the sender of a channel, or the owner of this OpenClaw. */
function userOf(ctx, { user = "me", users = {} }) {
  if (!ctx.senderId) return user;
  const sender = `${ctx.messageProvider ?? ctx.channel ?? "channel"}:${ctx.senderId}`;
  return users[sender] ?? sender;
}

function lastReply(messages) {
  const last = messages.findLast((message) => message?.role === "assistant");
  if (!last) return "";
  if (typeof last.content === "string") return last.content.trim();
  const texts = (last.content ?? []).filter((part) => part?.type === "text").map((part) => part.text);
  return texts.join("\n").trim();
}
