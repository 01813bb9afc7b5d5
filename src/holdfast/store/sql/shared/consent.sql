-- The user's choices about memory.

-- name: consent
-- A null subject means all; the row for all subjects ('') counts in any case.
SELECT subject, state, since
  FROM consent
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (CAST(:subject AS text) IS NULL OR subject IN (:subject, ''))
 ORDER BY subject;

-- name: save_consent
INSERT INTO consent (org, user_id, bot, subject, state, since)
VALUES (:org, :user_id, :bot, :about, :state, :since)
ON CONFLICT (org, user_id, bot, subject) DO UPDATE
   SET state = excluded.state,
       since = excluded.since;

-- name: remove_consent
DELETE FROM consent
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about;

-- name: blocked_topics
SELECT subject, topic
  FROM blocked_topic
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (CAST(:subject AS text) IS NULL OR subject IN (:subject, ''))
 ORDER BY subject, topic;

-- name: block_topic
INSERT INTO blocked_topic (org, user_id, bot, subject, topic, since)
VALUES (:org, :user_id, :bot, :about, :topic, :since)
ON CONFLICT (org, user_id, bot, subject, topic) DO NOTHING;

-- name: unblock_topic
DELETE FROM blocked_topic
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about AND topic = :topic;
