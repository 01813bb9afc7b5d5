-- Making derived rows again, and putting back what stood before.

-- name: rebuilt
SELECT id, part, layer, start_seq, end_seq, was, became, source, created_at
  FROM rebuilt
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation
 ORDER BY created_at, id, part;

-- name: add_rebuilt
INSERT INTO rebuilt
       (org, user_id, bot, subject, conversation, id, part, layer, start_seq, end_seq, was, became, source, created_at)
VALUES (:org, :user_id, :bot, :subject, :conversation, :id, :part, :layer, :start_seq, :end_seq, :was, :became, :source,
        :created_at);

-- name: rewrite_summary
UPDATE summary
   SET live = :live, stale = :stale, parent = :parent, doc = :doc
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND id = :id;

-- name: clear_rebuilt
DELETE FROM rebuilt
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: erase_rebuilt
DELETE FROM rebuilt
 WHERE org = :org AND user_id = :user_id AND bot = :bot;
