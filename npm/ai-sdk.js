/**
 * Middleware that gives a language model of the AI SDK a memory.
 *
 * What the user said is stored before the model is asked, what the model replied before the caller sees its end.  What memory
 * adds is in the request alone.
 */
export function memoryMiddleware(memory, defaults = {}) {
  const report = defaults.onError ?? ((error) => console.warn(`holdfast: ${error.message}`));
  const turns = new WeakMap(); // what is being asked, by the parameters of the call

  return {
    specificationVersion: "v3", // the versions differ in nothing that is used here

    async transformParams({ params }) {
      const turn = new Turn(memory, { ...defaults, ...params.providerOptions?.holdfast }, report);
      const changed = { ...params, prompt: await turn.begin(params.prompt) };
      turns.set(changed, turn);
      return changed;
    },

    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      await turns.get(params)?.finish(result.content.some(isCall) ? "" : textOf(result.content));
      return result;
    },

    async wrapStream({ doStream, params }) {
      const { stream, ...rest } = await doStream();
      return { stream: recorded(stream, turns.get(params)), ...rest };
    },
  };
}

class Turn {
  constructor(memory, options, report) {
    this.chat = memory.conversation(options.conversation, { user: options.user, bot: options.bot, subject: options.subject });
    this.options = options;
    this.report = report;
    this.asked = false;
  }

  /** Store what the user said, and return the prompt with what memory has. */
  async begin(prompt) {
    const at = prompt.findLastIndex((message) => message.role === "user");
    const question = at < 0 ? "" : textOf(prompt[at].content);
    if (!question) return prompt;
    const isNew = at === prompt.length - 1; // otherwise a tool was called meanwhile
    try {
      const stored = isNew && this.options.write !== false && (await this.recordOnce({ role: "user", content: question }, 0));
      this.asked = true; // without the question, the reply is not stored either
      if (this.options.read === false) return prompt;
      return await this.withMemory(prompt, at, question, stored || (!isNew && (await this.endsWith(question))));
    } catch (error) {
      this.report(error); // a memory that fails must not cost the reply
      return prompt;
    }
  }

  /** Whether the conversation ends with these words of the user. */
  async endsWith(words) {
    const [last] = await this.chat.messages({ last: 1 });
    return last?.role === "user" && last.content === words;
  }

  async withMemory(prompt, at, question, stored) {
    const { budgetTokens } = this.options;
    const context = await this.chat.context(stored ? null : question, { budgetTokens });
    const stable = context.messages.slice(0, context.stable_messages);
    const recalled = context.sections.filter(({ name, text }) => name === "recalled" && text).map(({ text }) => text);
    const said = context.messages.slice(context.stable_messages).filter(({ content }) => content && !recalled.includes(content));
    if (said.at(-1)?.role === "user" && said.at(-1).content === question) said.pop();
    const head = prompt.findIndex(({ role }) => role !== "system");
    const recent = at === head ? said.filter(({ role }) => role === "user" || role === "assistant") : [];
    return [
      ...prompt.slice(0, head),
      ...[...stable, ...recent].map(asPrompt),
      ...prompt.slice(head, at),
      ...recalled.map((content) => asPrompt({ role: "user", content })),
      ...prompt.slice(at),
    ];
  }

  /** Store what the model replied; a call of a tool has no text, and is not stored. */
  async finish(text, meta) {
    if (!this.asked || !text || this.options.write === false) return;
    try {
      await this.recordOnce({ role: "assistant", content: text, ...(meta ? { meta } : {}) }, 1);
    } catch (error) {
      this.report(error);
    }
  }

  /** Store a message, and tell whether it is the last one; the same words, still unanswered, are the same turn, tried again. */
  async recordOnce(message, number) {
    const { key } = this.options;
    if (key === undefined) {
      if (message.role === "user" && (await this.endsWith(message.content))) return true;
      return (await this.chat.record([message])).seqs.length > 0;
    }
    try {
      const receipt = await this.chat.record([message], { idempotencyKey: `ai-sdk ${key}:${number}` });
      return receipt.seqs.length > 0 && (!receipt.duplicate || (await this.endsWith(message.content)));
    } catch (error) {
      if (error.code !== "key-reused") throw error; // stored already, in other words
      return false;
    }
  }
}

/** The stream, stored before its end; what was heard of one that is broken off is stored, marked so. */
function recorded(stream, turn) {
  if (!turn) return stream;
  const reader = stream.getReader();
  let text = "";
  let failed = false; // the model broke off, and said so
  let calls = false; // a tool is called: the reply comes later
  let ended = false;

  async function end(meta) {
    if (ended) return; // canceling ends the reading, too
    ended = true;
    await turn.finish(text.trim(), meta);
  }

  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            if (!calls) await end(failed ? { incomplete: true } : undefined);
            return controller.close();
          }
          if (value.type === "text-start" && text) text += "\n";
          if (value.type === "text-delta") text += value.delta;
          failed ||= value.type === "error";
          calls ||= isCall(value);
          controller.enqueue(value);
        } catch (error) {
          await end({ incomplete: true });
          controller.error(error);
        }
      },
      async cancel(reason) {
        const storing = end({ incomplete: true });
        await reader.cancel(reason);
        await storing;
      },
    },
    { highWaterMark: 0 },
  );
}

function textOf(content) {
  if (typeof content === "string") return content;
  const texts = content.filter(({ type }) => type === "text").map(({ text }) => text);
  return texts.join("\n").trim();
}

/** Whether a part asks the program to run a tool: the reply comes later. */
function isCall({ type, providerExecuted }) {
  return type === "tool-call" && !providerExecuted;
}

function asPrompt({ role, content }) {
  return { role, content: [{ type: "text", text: content }] };
}
