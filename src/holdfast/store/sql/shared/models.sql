-- One user's model costs and own prompts.

-- name: usage
SELECT day, layer, model, calls, failed, input_tokens, output_tokens, cached_tokens, cost, unpriced
  FROM usage
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND day >= :since
 ORDER BY day, layer, model;

-- name: usage_at
SELECT day, layer, model, calls, failed, input_tokens, output_tokens, cached_tokens, cost, unpriced
  FROM usage
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND day = :day AND layer = :layer AND model = :model;

-- name: save_usage
INSERT INTO usage
       (org, user_id, bot, day, layer, model,
        calls, failed, input_tokens, output_tokens, cached_tokens, cost, unpriced)
VALUES (:org, :user_id, :bot, :day, :layer, :model,
        :calls, :failed, :input_tokens, :output_tokens, :cached_tokens, :cost, :unpriced)
ON CONFLICT (org, user_id, bot, day, layer, model) DO UPDATE
   SET calls         = excluded.calls,
       failed        = excluded.failed,
       input_tokens  = excluded.input_tokens,
       output_tokens = excluded.output_tokens,
       cached_tokens = excluded.cached_tokens,
       cost          = excluded.cost,
       unpriced      = excluded.unpriced;

-- name: remove_usage
DELETE FROM usage
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND day < :before;

-- name: prompts
SELECT name, version, text, since, draft
  FROM prompt
 WHERE org = :org AND user_id = :user_id AND bot = :bot
 ORDER BY name, version;

-- name: add_prompt
INSERT INTO prompt (org, user_id, bot, name, version, text, since, draft)
VALUES (:org, :user_id, :bot, :name, :version, :text, :since, :draft);

-- name: remove_prompts
DELETE FROM prompt
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND name = :name AND version <= :version;

-- name: release_job
-- Make a waiting job due again.
UPDATE job
   SET run_at = :run_at
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id AND state = 'ready'
RETURNING id;
