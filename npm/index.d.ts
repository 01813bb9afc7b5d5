export interface HoldfastOptions {
  /** The address of `holdfast serve`, such as `http://127.0.0.1:7800`. */
  baseURL: string;
  /** A key of the server: `holdfast keys --create app`. */
  apiKey: string;
  /** The assistant. */
  bot?: string;
  /** Whom or what the conversations are about, when that is not the user. */
  subject?: string;
  /** How long a request may take. */
  timeoutMs?: number;
  fetch?: typeof globalThis.fetch;
}

export interface Whose {
  user: string;
  bot?: string;
  subject?: string;
}

export interface Message {
  role: "user" | "assistant" | "tool" | "system";
  content: string;
  name?: string;
  meta?: Record<string, unknown>;
}

export interface StoredMessage extends Message {
  seq: number;
  at: string;
}

export interface Section {
  name: string;
  text: string;
  tokens: number;
}

export interface Context {
  messages: { role: "user" | "assistant" | "system" | "tool"; content: string }[];
  /** How many of the messages seldom change. */
  stable_messages: number;
  sections: Section[];
  tokens: number;
  budget_tokens: number;
}

export interface Receipt {
  seqs: number[];
  duplicate: boolean;
  /** Why nothing was stored: `paused` or `opted_out`. */
  skipped?: string | null;
}

export interface Fact {
  id: string;
  text: string;
  [more: string]: unknown;
}

export interface Hit {
  text: string;
  score: number;
  [more: string]: unknown;
}

export declare class HoldfastError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
}

export interface RequestOptions {
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export declare class Holdfast {
  constructor(options: HoldfastOptions);
  conversation(id: string, whose: Whose): Conversation;
  facts(user: string, options?: { bot?: string; subject?: string; limit?: number }): Promise<Fact[]>;
  search(user: string, query: string, options?: { bot?: string; subject?: string; limit?: number }): Promise<Hit[]>;
  request(method: string, path: string, options?: RequestOptions): Promise<any>;
}

export declare class Conversation {
  private constructor();
  context(query?: string | null, options?: { budgetTokens?: number; system?: string }): Promise<Context>;
  record(messages: Message[], options?: { idempotencyKey?: string }): Promise<Receipt>;
  messages(options?: { last?: number }): Promise<StoredMessage[]>;
  end(): Promise<void>;
}
