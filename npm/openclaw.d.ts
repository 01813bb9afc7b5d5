/** What of OpenClaw's plugin API is used. */
export interface OpenClawApi {
  pluginConfig?: Record<string, unknown>;
  logger?: { warn(message: string): void };
  on(hook: string, handler: (event: any, ctx: any) => unknown): void;
}

/** A plugin that gives OpenClaw a memory. */
declare const plugin: { id: string; name: string; description: string; register(api: OpenClawApi): void };
export default plugin;
