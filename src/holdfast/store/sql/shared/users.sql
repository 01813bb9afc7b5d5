-- The counters of a user and of a conversation, callers' keys, the last stable prefix.

-- name: user
SELECT next_doc, version, epoch, messages_rev, facts_rev, summaries_rev
  FROM user_state
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: save_user
INSERT INTO user_state (org, user_id, bot, next_doc, version, epoch, created_at)
VALUES (:org, :user_id, :bot, :next_doc, :version, :epoch, :created_at)
ON CONFLICT (org, user_id, bot) DO UPDATE
   SET next_doc = excluded.next_doc,
       version  = excluded.version,
       epoch    = excluded.epoch;

-- name: save_revisions
UPDATE user_state
   SET messages_rev  = :messages_rev,
       facts_rev     = :facts_rev,
       summaries_rev = :summaries_rev
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: note_embedder
UPDATE user_state
   SET embedder = :embedder
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: conversation
SELECT subject, conversation, next_seq, chunk_start, ended_seq, extracted_seq, session, last_at, created_at,
       read_seq, stated_seq, unread_turns, ahead_turns, own_facts
  FROM conversation
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: conversations
-- A null subject means all of them.
SELECT subject, conversation, next_seq, chunk_start, ended_seq, extracted_seq, session, last_at, created_at,
       read_seq, stated_seq, unread_turns, ahead_turns, own_facts
  FROM conversation
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (CAST(:subject AS text) IS NULL OR subject = :subject)
 ORDER BY conversation, subject;

-- name: conversations_apart
-- Conversations with facts of their own.
SELECT subject, conversation
  FROM conversation
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND own_facts = 1;

-- name: conversation_names
SELECT DISTINCT conversation
  FROM conversation
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (CAST(:subject AS text) IS NULL OR subject = :subject)
   AND conversation > :after
 ORDER BY conversation
 LIMIT :limit;

-- name: newest_conversations
SELECT subject, conversation, next_seq, chunk_start, ended_seq, extracted_seq, session, last_at, created_at,
       read_seq, stated_seq, unread_turns, ahead_turns, own_facts
  FROM conversation
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (CAST(:subject AS text) IS NULL OR subject = :subject)
   AND (last_at, conversation, subject) < (:before_at, :before_conversation, :before_subject)
 ORDER BY last_at DESC, conversation DESC, subject DESC
 LIMIT :limit;

-- name: save_conversation
INSERT INTO conversation
       (org, user_id, bot, subject, conversation,
        next_seq, chunk_start, ended_seq, extracted_seq, session, last_at, created_at,
        read_seq, stated_seq, unread_turns, ahead_turns, own_facts)
VALUES (:org, :user_id, :bot, :subject, :conversation,
        :next_seq, :chunk_start, :ended_seq, :extracted_seq, :session, :last_at, :created_at,
        :read_seq, :stated_seq, :unread_turns, :ahead_turns, :own_facts)
ON CONFLICT (org, user_id, bot, subject, conversation) DO UPDATE
   SET next_seq      = excluded.next_seq,
       chunk_start   = excluded.chunk_start,
       ended_seq     = excluded.ended_seq,
       extracted_seq = excluded.extracted_seq,
       session       = excluded.session,
       last_at       = excluded.last_at,
       created_at    = excluded.created_at,
       read_seq      = excluded.read_seq,
       stated_seq    = excluded.stated_seq,
       unread_turns  = excluded.unread_turns,
       ahead_turns   = excluded.ahead_turns,
       own_facts     = excluded.own_facts;

-- name: idempotency
SELECT digest, first_seq, last_seq
  FROM idempotency
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND key = :key;

-- name: add_idempotency
INSERT INTO idempotency
       (org, user_id, bot, subject, conversation, key, digest, first_seq, last_seq, created_at)
VALUES (:org, :user_id, :bot, :subject, :conversation, :key, :digest, :first_seq, :last_seq, :created_at);

-- name: prefix
SELECT sha256, manifest
  FROM prefix
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND variant = :variant;

-- name: save_prefix
INSERT INTO prefix (org, user_id, bot, subject, conversation, variant, sha256, manifest)
VALUES (:org, :user_id, :bot, :subject, :conversation, :variant, :sha256, :manifest)
ON CONFLICT (org, user_id, bot, subject, conversation, variant) DO UPDATE
   SET sha256   = excluded.sha256,
       manifest = excluded.manifest;

-- name: episode_ranges
SELECT start_seq, end_seq, found, source
  FROM episode_range
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation
 ORDER BY start_seq, end_seq;

-- name: add_episode_range
-- A range that is asked again says what was found last.
INSERT INTO episode_range (org, user_id, bot, subject, conversation, start_seq, end_seq, found, source, created_at)
VALUES (:org, :user_id, :bot, :subject, :conversation, :start_seq, :end_seq, :found, :source, :created_at)
ON CONFLICT (org, user_id, bot, subject, conversation, start_seq, end_seq) DO UPDATE
   SET found = excluded.found, source = excluded.source, created_at = excluded.created_at;

-- name: remove_episode_range
DELETE FROM episode_range
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND start_seq = :start_seq AND end_seq = :end_seq;
