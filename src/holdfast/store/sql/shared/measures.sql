-- What the context before each reply came to.

-- name: shown
SELECT seq, at, strategy, sent, prefix, recalled, taken_up
  FROM shown
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation
 ORDER BY seq;

-- name: add_shown
INSERT INTO shown
       (org, user_id, bot, subject, conversation, seq, at, strategy, sent, prefix, recalled, taken_up)
VALUES (:org, :user_id, :bot, :subject, :conversation, :seq, :at, :strategy, :sent, :prefix, :recalled, :taken_up);

-- name: clear_shown
DELETE FROM shown
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: erase_shown
DELETE FROM shown
 WHERE org = :org AND user_id = :user_id AND bot = :bot;
