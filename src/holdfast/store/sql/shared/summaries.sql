-- Summaries of one conversation, the messages they cover, and the sources of derived rows.

-- name: summaries
-- A null level means all; older versions of a range only when :old is 1.
SELECT id, level, start_seq, end_seq, exchanges, text, themes, concerns, actions, block, version,
       created_at, source, stale, parent, first_at, last_at
  FROM summary
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation
   AND (CAST(:level AS integer) IS NULL OR level = :level)
   AND (live = 1 OR :old = 1)
   AND (start_seq, level, version, id) > (:after_seq, :after_level, :after_version, :after_id)
 ORDER BY start_seq, level, version, id
 LIMIT :limit;

-- name: stale_summaries
-- A null subject or conversation means all of them.
SELECT subject, conversation, COUNT(*)
  FROM summary
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND live = 1 AND stale = 1
   AND (CAST(:subject AS text) IS NULL OR subject = :subject)
   AND (CAST(:conversation AS text) IS NULL OR conversation = :conversation)
 GROUP BY subject, conversation;

-- name: newest_summaries
-- Of the subject's other conversations: what no higher summary replaces, newest first.
SELECT conversation, id, level, start_seq, end_seq, exchanges, text, themes, concerns, actions, block, version,
       created_at, source, stale, parent, first_at, last_at
  FROM summary
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND live = 1 AND parent IS NULL
   AND conversation <> :conversation AND last_at IS NOT NULL
 ORDER BY last_at DESC, conversation DESC, start_seq DESC
 LIMIT :limit;

-- name: stories
-- A null subject means all of them.
SELECT subject, id, version, lines, source, created_at
  FROM story
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND (CAST(:subject AS text) IS NULL OR subject = :subject)
 ORDER BY subject;

-- name: save_story
INSERT INTO story (org, user_id, bot, subject, id, version, lines, source, created_at)
VALUES (:org, :user_id, :bot, :subject, :id, :version, :lines, :source, :created_at)
ON CONFLICT (org, user_id, bot, subject) DO UPDATE
   SET id = excluded.id, version = excluded.version, lines = excluded.lines, source = excluded.source,
       created_at = excluded.created_at;

-- name: remove_story
DELETE FROM story
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject;

-- name: summary_children
-- Which summaries each higher one was made from, in the order of their ranges.
SELECT DISTINCT d.child, d.source, s.start_seq
  FROM derivation d
  JOIN summary s ON s.org = d.org AND s.user_id = d.user_id AND s.bot = d.bot
   AND s.subject = d.subject AND s.conversation = d.conversation AND s.id = d.source
 WHERE d.org = :org AND d.user_id = :user_id AND d.bot = :bot
   AND d.source_kind = 'summary' AND d.subject = :subject AND d.conversation = :conversation
   AND d.child_kind = 'summary'
 ORDER BY d.child, s.start_seq, d.source;

-- name: children_of_summary
SELECT DISTINCT d.child, d.source, s.start_seq
  FROM derivation d
  JOIN summary s ON s.org = d.org AND s.user_id = d.user_id AND s.bot = d.bot
   AND s.subject = d.subject AND s.conversation = d.conversation AND s.id = d.source
 WHERE d.org = :org AND d.user_id = :user_id AND d.bot = :bot AND d.child_kind = 'summary' AND d.child = :child
   AND d.source_kind = 'summary'
 ORDER BY d.child, s.start_seq, d.source;

-- name: summary_text
-- The document's number comes back with its text.
SELECT CAST(:doc AS integer), text
  FROM summary
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND id = :id;

-- name: covered
SELECT seq, summary
  FROM coverage
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation
   AND seq BETWEEN :start_seq AND :end_seq
 ORDER BY seq;

-- name: add_summary
INSERT INTO summary
       (org, user_id, bot, subject, conversation, id, level, start_seq, end_seq, exchanges, text,
        themes, concerns, actions, block, version, parent, live, stale, doc, source, created_at, first_at, last_at)
VALUES (:org, :user_id, :bot, :subject, :conversation, :id, :level, :start_seq, :end_seq, :exchanges, :text,
        :themes, :concerns, :actions, :block, :version, :parent, :live, :stale, :doc, :source, :created_at, :first_at, :last_at);

-- name: add_coverage
INSERT INTO coverage (org, user_id, bot, subject, conversation, seq, summary)
VALUES (:org, :user_id, :bot, :subject, :conversation, :seq, :summary);

-- name: set_parent
UPDATE summary
   SET parent = :parent
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND id = :id;

-- name: add_derivation
INSERT INTO derivation
       (org, user_id, bot, child_kind, child, source_kind, subject, conversation, start_seq, end_seq, source)
VALUES (:org, :user_id, :bot, :child_kind, :child, :source_kind, :subject, :conversation, :start_seq, :end_seq, :source)
ON CONFLICT (org, user_id, bot, child_kind, child, source_kind, subject, conversation, start_seq, source) DO NOTHING;

-- name: any_summary_text
-- A summary of any version, by its id.
SELECT id, start_seq, end_seq, text
  FROM summary
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND id = :id;
