-- Rebuild derived rows, and restore the previous versions.

-- name: rebuilds
SELECT id, part, layer, start_seq, end_seq, before, after, source, created_at
  FROM rebuild
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation
 ORDER BY created_at, id, part;

-- name: add_rebuild
INSERT INTO rebuild
       (org, user_id, bot, subject, conversation, id, part, layer, start_seq, end_seq, before, after, source, created_at)
VALUES (:org, :user_id, :bot, :subject, :conversation, :id, :part, :layer, :start_seq, :end_seq, :before, :after, :source,
        :created_at);

-- name: rewrite_summary
UPDATE summary
   SET live = :live, stale = :stale, parent = :parent, doc = :doc
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND id = :id;

-- name: read_ranges
SELECT model, start_seq, end_seq
  FROM read_range
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation
 ORDER BY model, start_seq;

-- name: read_range_before
-- The stretch that ends right before a message, or holds it.
SELECT start_seq, end_seq
  FROM read_range
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND model = :model
   AND start_seq <= :start_seq AND end_seq >= :before
 ORDER BY start_seq
 LIMIT 1;

-- name: add_read_range
INSERT INTO read_range (org, user_id, bot, subject, conversation, model, start_seq, end_seq)
VALUES (:org, :user_id, :bot, :subject, :conversation, :model, :start_seq, :end_seq)
ON CONFLICT (org, user_id, bot, subject, conversation, model, start_seq) DO UPDATE
   SET end_seq = excluded.end_seq;

-- name: clear_read_range
DELETE FROM read_range
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: erase_read_range
DELETE FROM read_range
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: clear_rebuild
DELETE FROM rebuild
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: erase_rebuild
DELETE FROM rebuild
 WHERE org = :org AND user_id = :user_id AND bot = :bot;
