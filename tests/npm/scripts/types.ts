import { generateText, wrapLanguageModel, type LanguageModel } from "ai";
import { createOpenAI } from "@ai-sdk/openai";
import { Holdfast, HoldfastError, type Context, type Fact } from "holdfast-memory";
import { memoryMiddleware } from "holdfast-memory/ai-sdk";

const memory = new Holdfast({ baseURL: "http://127.0.0.1:7800", apiKey: "hf" });
const chat = memory.conversation("web-42", { user: "ana", subject: "rex" });
export const context: Promise<Context> = chat.context("What?", { budgetTokens: 500 });
export const facts: Promise<Fact[]> = memory.facts("ana");
export const seqs: Promise<number[]> = chat.record([{ role: "user", content: "Hi." }]).then((receipt) => receipt.seqs);
export const code = (error: unknown): string => (error instanceof HoldfastError ? error.code : "");
export const model: LanguageModel = wrapLanguageModel({
  model: createOpenAI({ apiKey: "k" })("gpt-5-mini"),
  middleware: memoryMiddleware(memory, { user: "ana", conversation: "web-42", onError: (error) => void error.message }),
});
export const answer = generateText({ model, prompt: "Hi.", providerOptions: { holdfast: { user: "bo" } } });
// @ts-expect-error a conversation belongs to a user
memory.conversation("web-42");
// @ts-expect-error there is no such role
chat.record([{ role: "poet", content: "Hi." }]);
