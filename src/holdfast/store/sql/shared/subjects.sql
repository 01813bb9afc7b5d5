-- Subjects with their names, and the rows that move when one subject becomes part of another.

-- name: subjects
SELECT subject, name, aliases, created_at
  FROM subject
 WHERE org = :org AND user_id = :user_id AND bot = :bot
 ORDER BY subject;

-- name: note_subject
-- A conversation began that is about it.
INSERT INTO subject (org, user_id, bot, subject, name, aliases, created_at)
VALUES (:org, :user_id, :bot, :subject, '', :aliases, :created_at)
ON CONFLICT (org, user_id, bot, subject) DO NOTHING;

-- name: save_subject
INSERT INTO subject (org, user_id, bot, subject, name, aliases, created_at)
VALUES (:org, :user_id, :bot, :about, :name, :aliases, :created_at)
ON CONFLICT (org, user_id, bot, subject) DO UPDATE
   SET name = excluded.name, aliases = excluded.aliases, created_at = excluded.created_at;

-- name: remove_subject
DELETE FROM subject
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about;

-- name: transfer_conversation
UPDATE conversation
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_message
UPDATE message
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_idempotency
UPDATE idempotency
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_coverage
UPDATE coverage
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_summary
UPDATE summary
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_rejected
UPDATE rejected
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_derivation
UPDATE derivation
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_prefix
UPDATE prefix
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_episode_range
UPDATE episode_range
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_rebuild
UPDATE rebuild
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_read_range
UPDATE read_range
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_context_stats
UPDATE context_stats
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_job
UPDATE job
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_event
UPDATE event
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: transfer_evidence
UPDATE evidence
   SET home = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND home = :subject AND conversation = :conversation;

-- name: transfer_owned_doc
-- Documents of the conversation's own facts; before the facts themselves.
UPDATE doc
   SET conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND kind = 'fact' AND conversation = :conversation
   AND ref IN (SELECT f.id FROM fact f
                WHERE f.org = :org AND f.user_id = :user_id AND f.bot = :bot
                  AND f.home = :subject AND f.only_in = :conversation);

-- name: transfer_owned_fact
UPDATE fact
   SET home = :into, only_in = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND home = :subject AND only_in = :conversation;

-- name: transfer_doc
UPDATE doc
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND kind <> 'fact';

-- name: transfer_vector
-- Of all conversations of a subject at once: numbers of documents are unique within the user.
UPDATE vector
   SET subject = :into
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND kind <> 'fact';

-- name: transfer_fact
UPDATE fact
   SET subject = :into
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about AND id = :id;

-- name: transfer_evidence_of
UPDATE evidence
   SET subject = :into
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about AND fact = :id;
