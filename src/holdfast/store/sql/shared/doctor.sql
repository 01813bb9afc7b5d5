-- Invariants: each query finds the rows that break one, and returns only their keys.
--
-- They look across users, in one pass a table; both sides of every join agree on the user.

-- name: check_coverage_points_home
-- A covered message names a live level-1 summary whose range contains it.
SELECT c.org, c.user_id, c.bot, c.subject, c.conversation, c.seq, c.summary
  FROM coverage c
  LEFT JOIN summary s ON s.org = c.org AND s.user_id = c.user_id AND s.bot = c.bot
   AND s.subject = c.subject AND s.conversation = c.conversation
   AND s.id = c.summary AND s.live = 1 AND s.level = 1 AND c.seq BETWEEN s.start_seq AND s.end_seq
 WHERE s.id IS NULL;

-- name: check_coverage_whole
-- A live level-1 summary covers every message of its range.
SELECT s.org, s.user_id, s.bot, s.subject, s.conversation, s.id
  FROM summary s
  LEFT JOIN coverage c ON c.org = s.org AND c.user_id = s.user_id AND c.bot = s.bot
   AND c.subject = s.subject AND c.conversation = s.conversation
   AND c.seq BETWEEN s.start_seq AND s.end_seq AND c.summary = s.id
 WHERE s.live = 1 AND s.level = 1
 GROUP BY s.org, s.user_id, s.bot, s.subject, s.conversation, s.id, s.start_seq, s.end_seq
HAVING COUNT(c.seq) <> s.end_seq - s.start_seq + 1;

-- name: check_level1_contiguous
-- Live level-1 summaries begin at message 1 and leave neither gaps nor overlaps.
SELECT ranked.org, ranked.user_id, ranked.bot, ranked.subject, ranked.conversation, ranked.id
  FROM (SELECT org, user_id, bot, subject, conversation, id, start_seq,
               LAG(end_seq) OVER (PARTITION BY org, user_id, bot, subject, conversation ORDER BY start_seq) AS before
          FROM summary
         WHERE live = 1 AND level = 1) AS ranked
 WHERE ranked.start_seq <> COALESCE(ranked.before, 0) + 1;

-- name: check_chunk_start
-- The first message that no chunk covers follows the last live level-1 summary.
SELECT c.org, c.user_id, c.bot, c.subject, c.conversation, c.chunk_start
  FROM conversation c
  LEFT JOIN summary s ON s.org = c.org AND s.user_id = c.user_id AND s.bot = c.bot
   AND s.subject = c.subject AND s.conversation = c.conversation
   AND s.live = 1 AND s.level = 1
 GROUP BY c.org, c.user_id, c.bot, c.subject, c.conversation, c.chunk_start
HAVING c.chunk_start <> COALESCE(MAX(s.end_seq), 0) + 1;

-- name: check_summary_range
-- A summary covers messages that exist.
SELECT s.org, s.user_id, s.bot, s.subject, s.conversation, s.id
  FROM summary s
  LEFT JOIN conversation c ON c.org = s.org AND c.user_id = s.user_id AND c.bot = s.bot
   AND c.subject = s.subject AND c.conversation = s.conversation
 WHERE c.next_seq IS NULL OR s.start_seq < 1 OR s.end_seq >= c.next_seq;

-- name: check_parent
-- The parent of a live summary is live, one level up, and spans it.
SELECT s.org, s.user_id, s.bot, s.subject, s.conversation, s.id, s.parent
  FROM summary s
  LEFT JOIN summary p ON p.org = s.org AND p.user_id = s.user_id AND p.bot = s.bot
   AND p.subject = s.subject AND p.conversation = s.conversation
   AND p.id = s.parent AND p.live = 1 AND p.level = s.level + 1
   AND p.start_seq <= s.start_seq AND p.end_seq >= s.end_seq
 WHERE s.live = 1 AND s.parent IS NOT NULL AND p.id IS NULL;

-- name: check_children
-- The children of a live higher summary fill its range without gap or overlap.
SELECT s.org, s.user_id, s.bot, s.subject, s.conversation, s.id
  FROM summary s
  LEFT JOIN summary k ON k.org = s.org AND k.user_id = s.user_id AND k.bot = s.bot
   AND k.subject = s.subject AND k.conversation = s.conversation
   AND k.level = s.level - 1 AND k.live = 1 AND k.parent = s.id
 WHERE s.live = 1 AND s.level > 1
 GROUP BY s.org, s.user_id, s.bot, s.subject, s.conversation, s.id, s.start_seq, s.end_seq
HAVING COUNT(k.id) = 0 OR MIN(k.start_seq) <> s.start_seq OR MAX(k.end_seq) <> s.end_seq
    OR SUM(k.end_seq - k.start_seq + 1) <> s.end_seq - s.start_seq + 1;

-- name: check_summary_edges
-- A live summary has an edge to each of its sources.
SELECT s.org, s.user_id, s.bot, s.subject, s.conversation, s.id
  FROM summary s
  LEFT JOIN derivation d ON d.org = s.org AND d.user_id = s.user_id AND d.bot = s.bot
   AND d.child_kind = 'summary' AND d.child = s.id
 WHERE s.live = 1 AND d.child IS NULL;

-- name: check_edge_of_summary
-- An edge of a summary has its summary.
SELECT d.org, d.user_id, d.bot, d.child_kind, d.child, d.source_kind, d.subject, d.conversation, d.start_seq, d.source
  FROM derivation d
  LEFT JOIN summary s ON s.org = d.org AND s.user_id = d.user_id AND s.bot = d.bot
   AND s.subject = d.subject AND s.conversation = d.conversation AND s.id = d.child
 WHERE d.child_kind = 'summary' AND s.id IS NULL;

-- name: check_edge_of_fact
-- An edge of a fact has its fact.
SELECT d.org, d.user_id, d.bot, d.child_kind, d.child, d.source_kind, d.subject, d.conversation, d.start_seq, d.source
  FROM derivation d
  LEFT JOIN fact f ON f.org = d.org AND f.user_id = d.user_id AND f.bot = d.bot AND f.id = d.child
 WHERE d.child_kind = 'fact' AND f.id IS NULL;

-- name: check_edge_of_story
-- An edge of a story has its story.
SELECT d.org, d.user_id, d.bot, d.child, d.source
  FROM derivation d
  LEFT JOIN story s ON s.org = d.org AND s.user_id = d.user_id AND s.bot = d.bot AND s.id = d.child
 WHERE d.child_kind = 'story' AND s.id IS NULL;

-- name: check_edge_to_summary
-- The summaries that a derived row was made from exist.
SELECT d.org, d.user_id, d.bot, d.child_kind, d.child, d.source_kind, d.subject, d.conversation, d.start_seq, d.source
  FROM derivation d
  LEFT JOIN summary s ON s.org = d.org AND s.user_id = d.user_id AND s.bot = d.bot
   AND s.subject = d.subject AND s.conversation = d.conversation AND s.id = d.source
 WHERE d.source_kind = 'summary' AND s.id IS NULL;

-- name: check_edge_to_messages
-- The messages that a derived row was made from exist.
SELECT d.org, d.user_id, d.bot, d.child_kind, d.child, d.source_kind, d.subject, d.conversation, d.start_seq, d.source
  FROM derivation d
  LEFT JOIN conversation c ON c.org = d.org AND c.user_id = d.user_id AND c.bot = d.bot
   AND c.subject = d.subject AND c.conversation = d.conversation
 WHERE d.source_kind = 'message' AND (c.next_seq IS NULL OR d.start_seq < 1 OR d.end_seq >= c.next_seq);

-- name: check_live_address
-- A live address holds one fact.
SELECT org, user_id, bot, subject, category, MIN(id), MAX(id)
  FROM fact
 WHERE valid_to IS NULL
 GROUP BY org, user_id, bot, subject, home, only_in, category, slot_key, slot_value
HAVING COUNT(*) > 1;

-- name: check_fact_evidence
-- No fact without a quote.
SELECT f.org, f.user_id, f.bot, f.subject, f.id
  FROM fact f
  LEFT JOIN evidence e ON e.org = f.org AND e.user_id = f.user_id AND e.bot = f.bot
   AND e.subject = f.subject AND e.fact = f.id
 WHERE e.fact IS NULL;

-- name: check_fact_end
-- A fact has stopped in every respect or in none.
SELECT org, user_id, bot, subject, id
  FROM fact
 WHERE (valid_to IS NULL AND (ended_at IS NOT NULL OR ended_because <> '' OR superseded_by IS NOT NULL))
    OR (valid_to IS NOT NULL AND (ended_at IS NULL OR ended_because = ''));

-- name: check_superseded_by
-- The fact that replaced another exists.
SELECT f.org, f.user_id, f.bot, f.subject, f.id, f.superseded_by
  FROM fact f
  LEFT JOIN fact g ON g.org = f.org AND g.user_id = f.user_id AND g.bot = f.bot
   AND g.subject = f.subject AND g.id = f.superseded_by
 WHERE f.superseded_by IS NOT NULL AND g.id IS NULL;

-- name: check_evidence_fact
-- A quote belongs to a fact.
SELECT e.org, e.user_id, e.bot, e.subject, e.fact, e.home, e.conversation, e.seq, e.start
  FROM evidence e
  LEFT JOIN fact f ON f.org = e.org AND f.user_id = e.user_id AND f.bot = e.bot
   AND f.subject = e.subject AND f.id = e.fact
 WHERE f.id IS NULL;

-- name: check_quote
-- A quote equals its message at that place, to the character.
SELECT e.org, e.user_id, e.bot, e.subject, e.fact, e.home, e.conversation, e.seq, e.start
  FROM evidence e
  LEFT JOIN message m ON m.org = e.org AND m.user_id = e.user_id AND m.bot = e.bot
   AND m.subject = e.home AND m.conversation = e.conversation AND m.seq = e.seq
 WHERE m.content IS NULL OR m.role <> e.role OR substr(m.content, CAST(e.start + 1 AS integer), CAST(e.stop - e.start AS integer)) <> e.quote;

-- name: check_message_doc
-- A message can be searched, unless it was erased or its branch abandoned.
SELECT m.org, m.user_id, m.bot, m.subject, m.conversation, m.seq, m.doc
  FROM message m
  LEFT JOIN doc d ON d.org = m.org AND d.user_id = m.user_id AND d.bot = m.bot
   AND d.subject = m.subject AND d.kind = 'message' AND d.doc = m.doc
 WHERE m.role NOT IN ('erased', 'abandoned') AND (d.doc IS NULL OR d.conversation <> m.conversation OR d.seq <> m.seq);

-- name: check_fact_doc
-- A live fact can be searched.
SELECT f.org, f.user_id, f.bot, f.subject, f.id, f.doc
  FROM fact f
  LEFT JOIN doc d ON d.org = f.org AND d.user_id = f.user_id AND d.bot = f.bot
   AND d.subject = f.subject AND d.kind = 'fact' AND d.doc = f.doc
 WHERE f.valid_to IS NULL AND (d.doc IS NULL OR d.ref <> f.id OR d.unscoped <> f.unscoped OR d.conversation <> f.only_in);

-- name: check_summary_doc
-- A live summary can be searched.
SELECT s.org, s.user_id, s.bot, s.subject, s.conversation, s.id, s.doc
  FROM summary s
  LEFT JOIN doc d ON d.org = s.org AND d.user_id = s.user_id AND d.bot = s.bot
   AND d.subject = s.subject AND d.kind = 'summary' AND d.doc = s.doc
 WHERE s.live = 1 AND (d.doc IS NULL OR d.ref <> s.id OR d.conversation <> s.conversation);

-- name: check_doc_of_message
-- A searchable message is there.
SELECT d.org, d.user_id, d.bot, d.subject, d.kind, d.doc
  FROM doc d
  LEFT JOIN message m ON m.org = d.org AND m.user_id = d.user_id AND m.bot = d.bot
   AND m.subject = d.subject AND m.conversation = d.conversation AND m.seq = d.seq AND m.doc = d.doc
 WHERE d.kind = 'message' AND m.seq IS NULL;

-- name: check_doc_of_fact
-- A searchable fact is there, and believed.
SELECT d.org, d.user_id, d.bot, d.subject, d.kind, d.doc, d.ref
  FROM doc d
  LEFT JOIN fact f ON f.org = d.org AND f.user_id = d.user_id AND f.bot = d.bot
   AND f.subject = d.subject AND f.id = d.ref AND f.doc = d.doc AND f.valid_to IS NULL
 WHERE d.kind = 'fact' AND f.id IS NULL;

-- name: check_doc_of_summary
-- A searchable summary is there, and live.
SELECT d.org, d.user_id, d.bot, d.subject, d.kind, d.doc, d.ref
  FROM doc d
  LEFT JOIN summary s ON s.org = d.org AND s.user_id = d.user_id AND s.bot = d.bot
   AND s.subject = d.subject AND s.conversation = d.conversation AND s.id = d.ref AND s.doc = d.doc AND s.live = 1
 WHERE d.kind = 'summary' AND s.id IS NULL;

-- name: check_doc_kind
-- Only messages, facts and summaries can be searched.
SELECT org, user_id, bot, subject, kind, doc
  FROM doc
 WHERE kind NOT IN ('message', 'fact', 'summary');

-- name: check_doc_terms
-- The length of a document is the number of its words.
SELECT org, user_id, bot, subject, kind, doc, terms
  FROM doc
 WHERE terms <> length(words) - length(replace(words, ' ', '')) + CASE WHEN words = '' THEN 0 ELSE 1 END;

-- name: check_segment
-- A segment holds what the rows of its documents hold.
SELECT s.org, s.user_id, s.bot, s.subject, s.kind, s.first_doc, s.last_doc
  FROM segment s
  LEFT JOIN doc d ON d.org = s.org AND d.user_id = s.user_id AND d.bot = s.bot
   AND d.subject = s.subject AND d.kind = s.kind AND d.doc BETWEEN s.first_doc AND s.last_doc
 GROUP BY s.org, s.user_id, s.bot, s.subject, s.kind, s.first_doc, s.last_doc, s.docs, s.terms, s.embedder
HAVING s.docs <> COUNT(d.doc) OR s.terms <> SUM(d.terms) OR SUM(CASE WHEN d.embedded <> s.embedder THEN 1 ELSE 0 END) > 0;

-- name: check_vector_doc
-- A vector belongs to a document that names its embedder.
SELECT v.org, v.user_id, v.bot, v.subject, v.kind, v.embedder, v.doc
  FROM vector v
  LEFT JOIN doc d ON d.org = v.org AND d.user_id = v.user_id AND d.bot = v.bot
   AND d.subject = v.subject AND d.kind = v.kind AND d.doc = v.doc AND d.embedded = v.embedder
 WHERE d.doc IS NULL;

-- name: check_doc_vector
-- A document that names an embedder has its vector.
SELECT d.org, d.user_id, d.bot, d.subject, d.kind, d.doc, d.embedded
  FROM doc d
  LEFT JOIN vector v ON v.org = d.org AND v.user_id = d.user_id AND v.bot = d.bot
   AND v.subject = d.subject AND v.kind = d.kind AND v.embedder = d.embedded AND v.doc = d.doc
 WHERE d.embedded <> '' AND v.doc IS NULL;

-- name: check_next_doc
-- The next document's number has not been used.
SELECT d.org, d.user_id, d.bot, MAX(d.doc)
  FROM doc d
  LEFT JOIN user_state p ON p.org = d.org AND p.user_id = d.user_id AND p.bot = d.bot
 GROUP BY d.org, d.user_id, d.bot, p.next_doc
HAVING p.next_doc IS NULL OR MAX(d.doc) >= p.next_doc;

-- name: check_next_seq
-- The messages of a conversation are numbered from 1 without a gap, up to the next one's number.
SELECT c.org, c.user_id, c.bot, c.subject, c.conversation, c.next_seq
  FROM conversation c
  LEFT JOIN message m ON m.org = c.org AND m.user_id = c.user_id AND m.bot = c.bot
   AND m.subject = c.subject AND m.conversation = c.conversation
 GROUP BY c.org, c.user_id, c.bot, c.subject, c.conversation, c.next_seq
HAVING COUNT(m.seq) <> c.next_seq - 1 OR COALESCE(MAX(m.seq), 0) <> c.next_seq - 1;

-- name: check_message_home
-- A message belongs to a conversation.
SELECT DISTINCT m.org, m.user_id, m.bot, m.subject, m.conversation
  FROM message m
  LEFT JOIN conversation c ON c.org = m.org AND c.user_id = m.user_id AND c.bot = m.bot
   AND c.subject = m.subject AND c.conversation = m.conversation
 WHERE c.conversation IS NULL;

-- name: check_conversation_home
-- A conversation belongs to a user.
SELECT c.org, c.user_id, c.bot, c.subject, c.conversation
  FROM conversation c
  LEFT JOIN user_state p ON p.org = c.org AND p.user_id = c.user_id AND p.bot = c.bot
 WHERE p.org IS NULL;

-- name: check_marks
-- No mark of a conversation lies beyond its messages.
SELECT org, user_id, bot, subject, conversation
  FROM conversation
 WHERE chunk_start < 1 OR chunk_start > next_seq
    OR extracted_seq < 0 OR extracted_seq >= next_seq OR ended_seq < 0 OR ended_seq >= next_seq
    OR read_seq < 0 OR read_seq >= next_seq OR stated_seq < 0 OR stated_seq >= next_seq;

-- name: check_episode_range
-- A range that was asked for episodes lies within its conversation.
SELECT e.org, e.user_id, e.bot, e.subject, e.conversation, e.start_seq, e.end_seq
  FROM episode_range e
  LEFT JOIN conversation c ON c.org = e.org AND c.user_id = e.user_id AND c.bot = e.bot
   AND c.subject = e.subject AND c.conversation = e.conversation
 WHERE c.next_seq IS NULL OR e.start_seq < 1 OR e.end_seq >= c.next_seq;

-- name: check_idempotency
-- A caller's key names messages that are there.
SELECT i.org, i.user_id, i.bot, i.subject, i.conversation, i.first_seq, i.last_seq
  FROM idempotency i
  LEFT JOIN conversation c ON c.org = i.org AND c.user_id = i.user_id AND c.bot = i.bot
   AND c.subject = i.subject AND c.conversation = i.conversation
 WHERE c.next_seq IS NULL OR i.first_seq < 1 OR i.last_seq < i.first_seq OR i.last_seq >= c.next_seq;

-- name: check_rebuild
-- A rebuilt range lies within its conversation.
SELECT r.org, r.user_id, r.bot, r.subject, r.conversation, r.id, r.part
  FROM rebuild r
  LEFT JOIN conversation c ON c.org = r.org AND c.user_id = r.user_id AND c.bot = r.bot
   AND c.subject = r.subject AND c.conversation = r.conversation
 WHERE c.next_seq IS NULL OR r.start_seq < 1 OR r.end_seq < r.start_seq OR r.end_seq >= c.next_seq;

-- name: check_read_range
-- A range that a model read lies within its conversation.
SELECT r.org, r.user_id, r.bot, r.subject, r.conversation, r.model, r.start_seq
  FROM read_range r
  LEFT JOIN conversation c ON c.org = r.org AND c.user_id = r.user_id AND c.bot = r.bot
   AND c.subject = r.subject AND c.conversation = r.conversation
 WHERE c.next_seq IS NULL OR r.start_seq < 1 OR r.end_seq < r.start_seq OR r.end_seq >= c.next_seq;

-- name: check_context_stats
-- Context statistics belong to an existing conversation and have possible values.
SELECT s.org, s.user_id, s.bot, s.subject, s.conversation, s.seq
  FROM context_stats s
  LEFT JOIN conversation c ON c.org = s.org AND c.user_id = s.user_id AND c.bot = s.bot
   AND c.subject = s.subject AND c.conversation = s.conversation
 WHERE c.next_seq IS NULL OR s.seq < 1 OR s.seq >= c.next_seq
    OR s.tokens < 0 OR s.recalled < 0 OR s.used < 0 OR s.used > s.recalled;

-- name: check_item
-- An item belongs to a known user, and to a conversation only by name: a framework may keep state before any message.
SELECT i.org, i.user_id, i.bot, i.subject, i.conversation, i.space
  FROM item i
  LEFT JOIN user_state u ON u.org = i.org AND u.user_id = i.user_id AND u.bot = i.bot
 WHERE u.next_doc IS NULL OR i.space = '' OR i.updated_at < i.created_at;

-- name: check_older_version
-- An older version of a summary covers nothing and is not found.
SELECT s.org, s.user_id, s.bot, s.subject, s.conversation, s.id
  FROM summary s
  LEFT JOIN coverage c ON c.org = s.org AND c.user_id = s.user_id AND c.bot = s.bot
   AND c.subject = s.subject AND c.conversation = s.conversation AND c.summary = s.id
 WHERE s.live = 0 AND (s.doc <> 0 OR c.seq IS NOT NULL)
 GROUP BY s.org, s.user_id, s.bot, s.subject, s.conversation, s.id;

-- name: check_job_state
-- A job that runs has a worker and a lease; one that does not has neither.
SELECT org, user_id, bot, id
  FROM job
 WHERE state NOT IN ('ready', 'running', 'dead', 'cancelled')
    OR attempt < 0 OR fence < 0
    OR (state = 'running' AND (worker = '' OR lease_until = 0 OR fence = 0))
    OR (state <> 'running' AND (worker <> '' OR lease_until <> 0));

-- name: check_erased_message
-- Nothing is left of an erased message but its number and its times, and no document, quote or edge of a fact.
SELECT m.org, m.user_id, m.bot, m.subject, m.conversation, m.seq
  FROM message m
  LEFT JOIN doc d ON d.org = m.org AND d.user_id = m.user_id AND d.bot = m.bot
   AND d.subject = m.subject AND d.kind = 'message' AND d.conversation = m.conversation AND d.seq = m.seq
  LEFT JOIN derivation e ON e.org = m.org AND e.user_id = m.user_id AND e.bot = m.bot
   AND e.source_kind = 'message' AND e.subject = m.subject AND e.conversation = m.conversation
   AND e.start_seq = m.seq AND e.child_kind <> 'summary'
 WHERE m.role = 'erased'
   AND (m.content <> '' OR m.name IS NOT NULL OR m.meta <> '{}' OR m.tokens <> 0
        OR d.doc IS NOT NULL OR e.child IS NOT NULL);

-- name: check_edge_of_end
-- An edge for the end of a fact has its fact, and that fact has ended.
SELECT d.org, d.user_id, d.bot, d.child_kind, d.child, d.source_kind, d.subject, d.conversation, d.start_seq, d.source
  FROM derivation d
  LEFT JOIN fact f ON f.org = d.org AND f.user_id = d.user_id AND f.bot = d.bot AND f.id = d.child
   AND f.valid_to IS NOT NULL
 WHERE d.child_kind = 'end' AND f.id IS NULL;

-- name: check_consent
-- A user who opted out has no job.
SELECT j.org, j.user_id, j.bot, j.id
  FROM job j
  LEFT JOIN consent c ON c.org = j.org AND c.user_id = j.user_id AND c.bot = j.bot
 WHERE c.state IN ('paused', 'opted-out') AND c.subject IN ('', j.subject);

-- name: check_usage
-- Counters belong to a user with a memory, with no more failures or unpriced answers than calls.
SELECT u.org, u.user_id, u.bot, u.day, u.layer
  FROM usage u
  LEFT JOIN user_state p ON p.org = u.org AND p.user_id = u.user_id AND p.bot = u.bot
 WHERE p.org IS NULL OR u.failed + u.unpriced > u.calls OR u.failed < 0 OR u.unpriced < 0
    OR length(u.day) <> 10 OR substr(u.day, 5, 1) <> '-' OR substr(u.day, 8, 1) <> '-' OR u.input_tokens < 0 OR u.output_tokens < 0 OR u.cached_tokens < 0 OR u.cost < 0;

-- name: check_event_numbers
-- A user's events are numbered without a gap, from the oldest that is kept.
SELECT e.org, e.user_id, e.bot
  FROM event e
 GROUP BY e.org, e.user_id, e.bot
HAVING COUNT(*) <> MAX(e.number) - MIN(e.number) + 1 OR MIN(e.number) < 1;

-- name: check_event_home
-- Only events of jobs may name a missing conversation: erased ones are never named.
SELECT e.org, e.user_id, e.bot, e.number
  FROM event e
  LEFT JOIN conversation c ON c.org = e.org AND c.user_id = e.user_id AND c.bot = e.bot
   AND c.subject = e.subject AND c.conversation = e.conversation
 WHERE e.conversation <> '' AND substr(e.kind, 1, 4) <> 'job.' AND c.conversation IS NULL;

-- name: check_prompt
-- A prompt belongs to a user with a memory, or without one to a bot or an org.
SELECT q.org, q.user_id, q.bot, q.version
  FROM prompt q
  LEFT JOIN user_state p ON p.org = q.org AND p.user_id = q.user_id AND p.bot = q.bot
 WHERE (p.org IS NULL AND q.user_id <> '') OR q.version < 1 OR q.name NOT IN ('chunk_summary', 'meta_summary', 'fact_extraction', 'episodes', 'character', 'story')
    OR length(q.text) > 4000;

-- name: check_provider_key
-- A key of a provider is sealed, and bound to an address.
SELECT k.org, k.user_id, k.id
  FROM provider_key k
 WHERE length(k.sealed) < 40 OR length(k.master) <> 8 OR length(k.print) <> 4 OR length(k.base_url) < 10 OR k.model = ''
    OR k.provider NOT IN ('openai', 'anthropic', 'google', 'ollama');

-- name: check_merged
-- A merged fact names a fact that has all of its evidence and was not merged itself.
SELECT f.org, f.user_id, f.bot, f.subject, f.id, f.superseded_by
  FROM fact f
  JOIN evidence e ON e.org = f.org AND e.user_id = f.user_id AND e.bot = f.bot
   AND e.subject = f.subject AND e.fact = f.id
  LEFT JOIN fact g ON g.org = f.org AND g.user_id = f.user_id AND g.bot = f.bot
   AND g.subject = f.subject AND g.id = f.superseded_by AND g.kind = f.kind AND g.ended_because <> 'merged'
  LEFT JOIN evidence w ON w.org = e.org AND w.user_id = e.user_id AND w.bot = e.bot
   AND w.subject = e.subject AND w.fact = g.id AND w.home = e.home AND w.conversation = e.conversation
   AND w.seq = e.seq AND w.start = e.start AND w.stop = e.stop
 WHERE f.ended_because = 'merged' AND w.fact IS NULL;

-- name: check_subject
-- What a conversation is about, beside the user, is listed among the user's subjects.
SELECT c.org, c.user_id, c.bot, c.subject, c.conversation
  FROM conversation c
  LEFT JOIN subject s ON s.org = c.org AND s.user_id = c.user_id AND s.bot = c.bot AND s.subject = c.subject
 WHERE c.subject <> 'self' AND s.subject IS NULL;
