-- Verbatim messages of one conversation.

-- name: messages
-- Erased messages leave a gap, and so do those of abandoned branches.
SELECT seq, role, name, content, at, tokens, meta
  FROM message
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation
   AND seq BETWEEN :start_seq AND :end_seq AND role NOT IN ('erased', 'abandoned')
 ORDER BY seq
 LIMIT :limit;

-- name: turn_at
SELECT subject, conversation, session, seq, role, name, content, at, tokens, meta
  FROM message
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND seq = :seq AND role NOT IN ('erased', 'abandoned');

-- name: add_message
INSERT INTO message
       (org, user_id, bot, subject, conversation,
        seq, role, name, content, at, tokens, session, doc, meta, recorded_at)
VALUES (:org, :user_id, :bot, :subject, :conversation,
        :seq, :role, :name, :content, :at, :tokens, :session, :doc, :meta, :recorded_at);

-- name: message_text
-- The document's number comes back with its text.
SELECT CAST(:doc AS integer), content
  FROM message
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND seq = :seq;
