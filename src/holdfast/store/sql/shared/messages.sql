-- Verbatim messages of one conversation.

-- name: messages
-- Erased messages leave a gap, and so do those of abandoned branches.
SELECT seq, role, name, content, at, tokens, meta
  FROM message
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation
   AND seq BETWEEN :start_seq AND :end_seq AND role NOT IN ('erased', 'abandoned')
 ORDER BY seq
 LIMIT :limit;

-- name: names_at_start
-- Who speaks in the first messages, by their first one; names are rare, so that hardly a row leaves the database.
SELECT name, MIN(seq)
  FROM (SELECT seq, role, name
          FROM message
         WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation
           AND role NOT IN ('erased', 'abandoned')
         ORDER BY seq
         LIMIT :limit) AS first
 WHERE role = 'user' AND name <> ''
 GROUP BY name
 ORDER BY 2;

-- name: add_message
INSERT INTO message
       (org, user_id, bot, subject, conversation,
        seq, role, name, content, at, tokens, session, doc, meta, recorded_at)
VALUES (:org, :user_id, :bot, :subject, :conversation,
        :seq, :role, :name, :content, :at, :tokens, :session, :doc, :meta, :recorded_at);
