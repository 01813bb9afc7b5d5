-- Erasing: what rests on what, and the deletes; each keeps to the range of one user.

-- name: message_rows
-- Messages with all their columns, tombstones among them.
SELECT seq, role, name, content, at, tokens, meta, session, doc, recorded_at
  FROM message
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation
   AND seq BETWEEN :start_seq AND :end_seq
 ORDER BY seq;

-- name: rewrite_message
UPDATE message
   SET role = :role, name = :name, content = :content, tokens = :tokens, doc = :doc, meta = :meta
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND seq = :seq;

-- name: summary_rows
SELECT id, level, start_seq, end_seq, exchanges, text, themes, concerns, actions, block, version,
       created_at, source, stale, parent, first_at, last_at, doc, live
  FROM summary
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation
 ORDER BY start_seq, level, version, id;

-- name: summary_words
-- The words of all summaries of the user, older versions among them.
SELECT subject, conversation, start_seq, text, themes, concerns, actions
  FROM summary
 WHERE org = :org AND user_id = :user_id AND bot = :bot
 ORDER BY subject, conversation, start_seq, level, version, id;

-- name: places_of_role
-- The conversations of the user that hold messages of a role.
SELECT DISTINCT subject, conversation
  FROM message
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND role = :role
 ORDER BY subject, conversation;

-- name: derived_from
SELECT DISTINCT child_kind, child
  FROM derivation
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND source_kind = 'message'
   AND subject = :subject AND conversation = :conversation AND start_seq <= :end_seq AND end_seq >= :start_seq
 ORDER BY child_kind, child;

-- name: endings
SELECT child_kind, child, source_kind, subject, conversation, start_seq, end_seq, source
  FROM derivation
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND child_kind = 'end'
   AND (CAST(:subject AS text) IS NULL OR subject = :subject)
 ORDER BY child, subject, conversation, start_seq;

-- name: idempotency_keys
SELECT key, digest, first_seq, last_seq
  FROM idempotency
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation
 ORDER BY key;

-- name: replaced_by
SELECT subject, id, kind, category, key, value, text, slot_key, slot_value, cardinality, confidence, lifetime,
       valid_from, valid_to, recorded_at, ended_at, ended_because, superseded_by, expires_at, unscoped,
       stated_at, stated_seq, strength, last_used_at, uses, doc, source, importance,
       home, only_in, label
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about AND superseded_by = :id
 ORDER BY valid_from, id;

-- name: remove_fact
DELETE FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about AND id = :id;

-- name: remove_evidence_of
DELETE FROM evidence
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about AND fact = :id;

-- name: remove_evidence
DELETE FROM evidence
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about AND fact = :fact
   AND home = :home AND conversation = :conversation AND seq = :seq AND start = :start;

-- name: evidence_at
SELECT start
  FROM evidence
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about AND fact = :fact
   AND home = :home AND conversation = :conversation AND seq = :seq;

-- name: remove_edges_of
DELETE FROM derivation
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND child_kind = :child_kind AND child = :child;

-- name: remove_edge
DELETE FROM derivation
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND child_kind = :child_kind AND child = :child
   AND source_kind = 'message' AND subject = :home AND conversation = :conversation AND start_seq = :seq;

-- name: remove_edges_to_summary
DELETE FROM derivation
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND source_kind = 'summary'
   AND subject = :subject AND conversation = :conversation AND start_seq = 0 AND source = :id;

-- name: remove_summary
DELETE FROM summary
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND id = :id;

-- name: remove_coverage
DELETE FROM coverage
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation
   AND seq BETWEEN :start_seq AND :end_seq AND summary = :id;

-- name: remove_rejected
DELETE FROM rejected
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND seq BETWEEN :start_seq AND :end_seq
RETURNING seq;

-- name: remove_all_rejected
-- A null subject means all of them.
DELETE FROM rejected
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (CAST(:subject AS text) IS NULL OR subject = :subject)
RETURNING seq;

-- name: forget_idempotency_digests
-- The key stays used: a retry must not bring the message back.
UPDATE idempotency
   SET digest = ''
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation
   AND first_seq <= :end_seq AND last_seq >= :start_seq;

-- name: remove_prefixes
DELETE FROM prefix
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: release_jobs
-- Their workers hold a fence that is no longer running.
UPDATE job
   SET state = 'ready', lease_until = 0, worker = '', run_at = :run_at
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND state = 'running';

-- name: remove_jobs
-- A null subject or conversation means all of them.
DELETE FROM job
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (CAST(:subject AS text) IS NULL OR subject = :subject)
   AND (CAST(:conversation AS text) IS NULL OR conversation = :conversation);

-- name: clear_conversation
DELETE FROM conversation
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: clear_message
DELETE FROM message
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: clear_idempotency
DELETE FROM idempotency
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: clear_coverage
DELETE FROM coverage
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: clear_summary
DELETE FROM summary
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: clear_rejected
DELETE FROM rejected
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: clear_episode_range
DELETE FROM episode_range
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: clear_prefix
DELETE FROM prefix
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation;

-- name: erase_conversation
DELETE FROM conversation
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_message
DELETE FROM message
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_idempotency
DELETE FROM idempotency
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_coverage
DELETE FROM coverage
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_summary
DELETE FROM summary
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_story
DELETE FROM story
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_fact
DELETE FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_evidence
DELETE FROM evidence
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_rejected
DELETE FROM rejected
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_derivation
DELETE FROM derivation
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_doc
DELETE FROM doc
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_segment
DELETE FROM segment
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_vector
DELETE FROM vector
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_job
DELETE FROM job
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_prefix
DELETE FROM prefix
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_episode_range
DELETE FROM episode_range
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_usage
DELETE FROM usage
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_prompt
DELETE FROM prompt
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_blocked_topic
DELETE FROM blocked_topic
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_subject
DELETE FROM subject
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_user
DELETE FROM user_state
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: count_rows
SELECT 'conversation', COUNT(*) FROM conversation WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'message', COUNT(*) FROM message WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'idempotency', COUNT(*) FROM idempotency WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'coverage', COUNT(*) FROM coverage WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'summary', COUNT(*) FROM summary WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'story', COUNT(*) FROM story WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'fact', COUNT(*) FROM fact WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'evidence', COUNT(*) FROM evidence WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'rejected', COUNT(*) FROM rejected WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'derivation', COUNT(*) FROM derivation WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'doc', COUNT(*) FROM doc WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'segment', COUNT(*) FROM segment WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'vector', COUNT(*) FROM vector WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'job', COUNT(*) FROM job WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'prefix', COUNT(*) FROM prefix WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'episode_range', COUNT(*) FROM episode_range WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'blocked_topic', COUNT(*) FROM blocked_topic WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'subject', COUNT(*) FROM subject WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'usage', COUNT(*) FROM usage WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'prompt', COUNT(*) FROM prompt WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'rebuild', COUNT(*) FROM rebuild WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'read_range', COUNT(*) FROM read_range WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'context_stats', COUNT(*) FROM context_stats WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'item', COUNT(*) FROM item WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'event', COUNT(*) FROM event WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'user', COUNT(*) FROM user_state WHERE org = :org AND user_id = :user_id AND bot = :bot
UNION ALL SELECT 'provider_key', COUNT(*) FROM provider_key WHERE org = :org AND user_id = :user_id
UNION ALL SELECT 'consent', COUNT(*) FROM consent WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: erase_operation
DELETE FROM operation
 WHERE org = :org AND user_id = :user_id AND bot = :bot;
