import type { Holdfast } from "./index.js";

export interface TurnOptions {
  /** Whose memory it is. */
  user?: string;
  /** The conversation. */
  conversation?: string;
  /** The idempotency key of the turn: its attempts are stored once. */
  key?: string;
  /** The assistant. */
  bot?: string;
  /** Whom or what the conversation is about, when that is not the user. */
  subject?: string;
  /** What memory may add to a prompt. */
  budgetTokens?: number;
  /** `false` to store only. */
  read?: boolean;
  /** `false` to read only. */
  write?: boolean;
}

export interface MiddlewareOptions extends TurnOptions {
  /** Called when the memory fails, which does not cost the reply; a warning on the console when not given. */
  onError?: (error: Error) => void;
}

/** What `wrapLanguageModel` of the AI SDK takes as its middleware, in versions 6 and 7. */
export interface MemoryMiddleware {
  readonly specificationVersion: any;
  transformParams(options: any): Promise<any>;
  wrapGenerate(options: any): Promise<any>;
  wrapStream(options: any): Promise<any>;
}

export declare function memoryMiddleware(memory: Holdfast, options?: MiddlewareOptions): MemoryMiddleware;
