-- The size of the context before each reply.

-- name: context_stats
SELECT seq, at, strategy, tokens, prefix, recalled, used
  FROM context_stats
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation
 ORDER BY seq;

-- name: add_context_stats
INSERT INTO context_stats
       (org, user_id, bot, subject, conversation, seq, at, strategy, tokens, prefix, recalled, used, sent)
VALUES (:org, :user_id, :bot, :subject, :conversation, :seq, :at, :strategy, :tokens, :prefix, :recalled, :used, :sent);

-- name: contexts_sent
-- The contexts before a reply and before the replies ahead of it, newest first.
SELECT seq, at, strategy, tokens, prefix, recalled, used, sent
  FROM context_stats
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND seq <= :seq
 ORDER BY seq DESC
 LIMIT :limit;

-- name: clear_context_stats
DELETE FROM context_stats
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: erase_context_stats
DELETE FROM context_stats
 WHERE org = :org AND user_id = :user_id AND bot = :bot;
