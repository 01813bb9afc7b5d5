-- Facts, their evidence, and rejected candidates.
--
-- Three parameters limit the rows that a scope may see: :all = 1 for a scope without a subject;
-- :subject for the subject of the scope ('self' included in any case); :shared = 1 when facts about
-- others count as well that were said in a conversation about no subject in particular.  Four more say whose facts:
-- :every = 1 for all, else those of the conversation :owner about :owner_home, and with :common = 1 the user's.

-- name: facts
SELECT subject, id, kind, category, key, value, text, slot_key, slot_value, cardinality, confidence, lifetime,
       valid_from, valid_to, recorded_at, ended_at, ended_because, superseded_by, expires_at, unscoped,
       stated_at, stated_seq, strength, last_used_at, uses, doc, source, importance,
       home, only_in, label
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (:every = 1 OR (home = :owner_home AND only_in = :owner) OR (:common = 1 AND only_in = ''))
   AND valid_to IS NULL
   AND (:all = 1 OR subject IN (:subject, 'self') OR (:shared = 1 AND unscoped = 1))
   AND (CAST(:category AS text) IS NULL OR category = :category OR label = :label)
   AND (CAST(:kind AS text) IS NULL OR kind = :kind)
   AND (expires_at IS NULL OR expires_at > :now_ms)
   AND (subject, category, key, value, id)
     > (:after_subject, :after_category, :after_key, :after_value, :after_id)
 ORDER BY subject, category, key, value, id
 LIMIT :limit;

-- name: evidence_of_facts
SELECT e.subject, e.fact, e.conversation, e.seq, e.role, e.quote, e.start, e.stop, e.at, e.home
  FROM evidence e
  JOIN fact f ON f.org = e.org AND f.user_id = e.user_id AND f.bot = e.bot AND f.subject = e.subject AND f.id = e.fact
 WHERE e.org = :org AND e.user_id = :user_id AND e.bot = :bot
   AND (:every = 1 OR (f.home = :owner_home AND f.only_in = :owner) OR (:common = 1 AND f.only_in = ''))
   AND f.valid_to IS NULL
   AND (:all = 1 OR f.subject IN (:subject, 'self') OR (:shared = 1 AND f.unscoped = 1))
   AND (CAST(:category AS text) IS NULL OR f.category = :category OR f.label = :label)
   AND (CAST(:kind AS text) IS NULL OR f.kind = :kind)
 ORDER BY e.subject, e.fact, e.at, e.seq, e.conversation, e.start;

-- name: all_facts
SELECT subject, id, kind, category, key, value, text, slot_key, slot_value, cardinality, confidence, lifetime,
       valid_from, valid_to, recorded_at, ended_at, ended_because, superseded_by, expires_at, unscoped,
       stated_at, stated_seq, strength, last_used_at, uses, doc, source, importance,
       home, only_in, label
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (:every = 1 OR (home = :owner_home AND only_in = :owner) OR (:common = 1 AND only_in = ''))
   AND (:all = 1 OR subject IN (:subject, 'self') OR (:shared = 1 AND unscoped = 1))
   AND (CAST(:category AS text) IS NULL OR category = :category OR label = :label)
   AND (CAST(:key AS text) IS NULL OR key = :key)
   AND (valid_from, recorded_at, id) > (:after_from, :after_recorded, :after_id)
 ORDER BY valid_from, recorded_at, id
 LIMIT :limit;

-- name: facts_said_here
-- Facts with a quote in a range of the scope's conversation, by the first such message.
SELECT f.subject, f.id, f.kind, f.category, f.key, f.value, f.text, f.slot_key, f.slot_value, f.cardinality,
       f.confidence, f.lifetime, f.valid_from, f.valid_to, f.recorded_at, f.ended_at, f.ended_because,
       f.superseded_by, f.expires_at, f.unscoped, f.stated_at, f.stated_seq, f.strength, f.last_used_at, f.uses,
       f.doc, f.source, f.importance, f.home, f.only_in, f.label, e.first_seq
  FROM fact f
  JOIN (SELECT org, user_id, bot, subject, fact, MIN(seq) AS first_seq
          FROM evidence
         WHERE org = :org AND user_id = :user_id AND bot = :bot AND home = :subject
           AND conversation = :conversation AND seq BETWEEN :start_seq AND :end_seq
         GROUP BY org, user_id, bot, subject, fact) e
    ON e.org = f.org AND e.user_id = f.user_id AND e.bot = f.bot AND e.subject = f.subject AND e.fact = f.id
 WHERE f.org = :org AND f.user_id = :user_id AND f.bot = :bot
   AND (:every = 1 OR (f.home = :owner_home AND f.only_in = :owner) OR (:common = 1 AND f.only_in = ''))
   AND (f.subject IN (:subject, 'self') OR (:shared = 1 AND f.unscoped = 1))
   AND (f.valid_to IS NULL OR :live = 0)
   AND (CAST(:kind AS text) IS NULL OR f.kind = :kind)
   AND (e.first_seq, f.recorded_at, f.id) > (:after_seq, :after_recorded, :after_id)
 ORDER BY e.first_seq, f.recorded_at, f.id
 LIMIT :limit;

-- name: evidence_of_all_facts
SELECT e.subject, e.fact, e.conversation, e.seq, e.role, e.quote, e.start, e.stop, e.at, e.home
  FROM evidence e
  JOIN fact f ON f.org = e.org AND f.user_id = e.user_id AND f.bot = e.bot AND f.subject = e.subject AND f.id = e.fact
 WHERE e.org = :org AND e.user_id = :user_id AND e.bot = :bot
   AND (:every = 1 OR (f.home = :owner_home AND f.only_in = :owner) OR (:common = 1 AND f.only_in = ''))
   AND (:all = 1 OR f.subject IN (:subject, 'self') OR (:shared = 1 AND f.unscoped = 1))
   AND (CAST(:category AS text) IS NULL OR f.category = :category OR f.label = :label)
   AND (CAST(:key AS text) IS NULL OR f.key = :key)
 ORDER BY e.subject, e.fact, e.at, e.seq, e.conversation, e.start;

-- name: fact
SELECT subject, id, kind, category, key, value, text, slot_key, slot_value, cardinality, confidence, lifetime,
       valid_from, valid_to, recorded_at, ended_at, ended_because, superseded_by, expires_at, unscoped,
       stated_at, stated_seq, strength, last_used_at, uses, doc, source, importance,
       home, only_in, label
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (:every = 1 OR (home = :owner_home AND only_in = :owner) OR (:common = 1 AND only_in = ''))
   AND id = :id
   AND (:all = 1 OR subject IN (:subject, 'self') OR (:shared = 1 AND unscoped = 1));

-- name: fact_at
SELECT subject, id, kind, category, key, value, text, slot_key, slot_value, cardinality, confidence, lifetime,
       valid_from, valid_to, recorded_at, ended_at, ended_because, superseded_by, expires_at, unscoped,
       stated_at, stated_seq, strength, last_used_at, uses, doc, source, importance,
       home, only_in, label
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (:every = 1 OR (home = :owner_home AND only_in = :owner) OR (:common = 1 AND only_in = ''))
   AND subject = :about
   AND category = :category AND slot_key = :slot_key AND slot_value = :slot_value AND valid_to IS NULL;

-- name: facts_in
SELECT subject, id, kind, category, key, value, text, slot_key, slot_value, cardinality, confidence, lifetime,
       valid_from, valid_to, recorded_at, ended_at, ended_because, superseded_by, expires_at, unscoped,
       stated_at, stated_seq, strength, last_used_at, uses, doc, source, importance,
       home, only_in, label
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (:every = 1 OR (home = :owner_home AND only_in = :owner) OR (:common = 1 AND only_in = ''))
   AND subject = :about AND category = :category AND valid_to IS NULL
 ORDER BY key, value, id;

-- name: all_facts_in
SELECT subject, id, kind, category, key, value, text, slot_key, slot_value, cardinality, confidence, lifetime,
       valid_from, valid_to, recorded_at, ended_at, ended_because, superseded_by, expires_at, unscoped,
       stated_at, stated_seq, strength, last_used_at, uses, doc, source, importance,
       home, only_in, label
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (:every = 1 OR (home = :owner_home AND only_in = :owner) OR (:common = 1 AND only_in = ''))
   AND subject = :about AND category = :category
 ORDER BY valid_from, recorded_at, id;

-- name: last_stated_in
SELECT MAX(stated_at)
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (:every = 1 OR (home = :owner_home AND only_in = :owner) OR (:common = 1 AND only_in = ''))
   AND subject = :about AND category = :category;

-- name: expired
-- Believed facts, of any subject, whose own words set an end that has passed.
SELECT id
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND valid_to IS NULL AND expires_at <= :now_ms;

-- name: count_facts
SELECT COUNT(*)
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND valid_to IS NULL;

-- name: count_statements
-- Live and past ones: the number only falls when something is erased.
SELECT COUNT(*)
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND kind <> 'attribute';

-- name: statements
SELECT subject, id, kind, category, key, value, text, slot_key, slot_value, cardinality, confidence, lifetime,
       valid_from, valid_to, recorded_at, ended_at, ended_because, superseded_by, expires_at, unscoped,
       stated_at, stated_seq, strength, last_used_at, uses, doc, source, importance,
       home, only_in, label
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (:every = 1 OR (home = :owner_home AND only_in = :owner) OR (:common = 1 AND only_in = ''))
   AND subject = :about AND kind = 'statement'
   AND (valid_to IS NULL OR ended_because IN ('archived', 'merged'))
   AND (:all = 1 OR subject IN (:subject, 'self') OR (:shared = 1 AND unscoped = 1))
 ORDER BY doc, id;

-- name: uses
SELECT subject, id, strength, stated_at, last_used_at, uses, recorded_at
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id;

-- name: subject_of_fact
SELECT id, subject
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id;

-- name: past_fact
SELECT id
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about AND id = :id AND valid_to IS NOT NULL;

-- name: quotes_of
-- What an active fact quotes of one message.
SELECT e.home, e.conversation, e.seq, f.id, e.quote
  FROM evidence e
  JOIN fact f ON f.org = e.org AND f.user_id = e.user_id AND f.bot = e.bot AND f.subject = e.subject AND f.id = e.fact
 WHERE e.org = :org AND e.user_id = :user_id AND e.bot = :bot AND e.subject = :about AND e.fact = :id
   AND e.home = :subject AND e.conversation = :conversation AND e.seq = :seq AND f.valid_to IS NULL
 ORDER BY e.start;

-- name: past_facts_in
-- Past facts that rest on messages of one conversation, up to one of them. SQLite joins in the written order here: it read
-- all facts of the user for each message otherwise.
SELECT DISTINCT d.start_seq, f.id, f.kind, f.key, f.value, f.text
  FROM fact f
  CROSS JOIN derivation d
 WHERE f.org = :org AND f.user_id = :user_id AND f.bot = :bot AND f.valid_to IS NOT NULL
   AND d.org = :org AND d.user_id = :user_id AND d.bot = :bot AND d.child_kind = 'fact' AND d.child = f.id
   AND d.source_kind = 'message' AND d.subject = :subject AND d.conversation = :conversation AND d.start_seq <= :end_seq
 ORDER BY d.start_seq, f.id;

-- name: past_facts_about
-- The same of all conversations about the subject.
SELECT DISTINCT f.id, f.kind, f.key, f.value, f.text
  FROM derivation d
  JOIN fact f ON f.org = d.org AND f.user_id = d.user_id AND f.bot = d.bot AND f.id = d.child
 WHERE d.org = :org AND d.user_id = :user_id AND d.bot = :bot AND d.source_kind = 'message'
   AND d.subject = :subject AND d.child_kind = 'fact' AND f.valid_to IS NOT NULL
 ORDER BY f.id;

-- name: corrections_apart
-- Messages by hand that state facts, and the conversations that these belong to; for users who have such conversations.
SELECT DISTINCT e.home, e.conversation, e.seq, f.home, f.only_in
  FROM evidence e
  JOIN fact f ON f.org = e.org AND f.user_id = e.user_id AND f.bot = e.bot AND f.subject = e.subject AND f.id = e.fact
 WHERE e.org = :org AND e.user_id = :user_id AND e.bot = :bot AND e.conversation = :by_hand
 ORDER BY e.home, e.seq, f.home, f.only_in;

-- name: evidence_of
SELECT e.subject, e.fact, e.conversation, e.seq, e.role, e.quote, e.start, e.stop, e.at, e.home
  FROM evidence e
 WHERE e.org = :org AND e.user_id = :user_id AND e.bot = :bot AND e.subject = :about AND e.fact = :fact
 ORDER BY e.subject, e.fact, e.at, e.seq, e.conversation, e.start;

-- name: fact_text
-- The document's number comes back with its text.
SELECT CAST(:doc AS integer), text
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about AND id = :id;

-- name: add_fact
INSERT INTO fact
       (org, user_id, bot, subject, id, kind, category, key, value, text, slot_key, slot_value, cardinality,
        confidence, lifetime, valid_from, valid_to, recorded_at, ended_at, ended_because, superseded_by,
        expires_at, unscoped, stated_at, stated_seq, strength, last_used_at, uses, doc, source, importance,
        home, only_in, label)
VALUES (:org, :user_id, :bot, :about, :id, :kind, :category, :key, :value, :text, :slot_key, :slot_value, :cardinality,
        :confidence, :lifetime, :valid_from, :valid_to, :recorded_at, :ended_at, :ended_because, :superseded_by,
        :expires_at, :unscoped, :stated_at, :stated_seq, :strength, :last_used_at, :uses, :doc, :source, :importance,
        :owner_home, :owner, :label);

-- name: update_fact
UPDATE fact
   SET kind = :kind, category = :category, key = :key, value = :value, text = :text,
       slot_key = :slot_key, slot_value = :slot_value, cardinality = :cardinality,
       confidence = :confidence, lifetime = :lifetime, valid_from = :valid_from, valid_to = :valid_to,
       recorded_at = :recorded_at, ended_at = :ended_at, ended_because = :ended_because,
       superseded_by = :superseded_by, expires_at = :expires_at, unscoped = :unscoped,
       stated_at = :stated_at, stated_seq = :stated_seq, strength = :strength,
       last_used_at = :last_used_at, uses = :uses, doc = :doc, source = :source,
       importance = :importance, home = :owner_home, only_in = :owner, label = :label
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about AND id = :id
RETURNING id;

-- name: save_uses
UPDATE fact
   SET strength = :strength, last_used_at = :last_used_at, uses = :uses
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about AND id = :id;

-- name: add_evidence
-- The same quote twice is kept once; no row comes back for the second.
INSERT INTO evidence
       (org, user_id, bot, subject, fact, home, conversation, seq, start, stop, role, quote, at, recorded_at)
VALUES (:org, :user_id, :bot, :about, :fact, :home, :conversation, :seq, :start, :stop, :role, :quote, :at, :recorded_at)
ON CONFLICT (org, user_id, bot, subject, fact, home, conversation, seq, start) DO NOTHING
RETURNING seq;

-- name: rejected
-- A null subject or conversation means all of them, and so does an empty kind.
SELECT conversation, claim, reason, recorded_at, subject, seq, id
  FROM rejected
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (CAST(:subject AS text) IS NULL OR subject = :subject)
   AND (CAST(:conversation AS text) IS NULL OR conversation = :conversation)
   AND (recorded_at, conversation, subject, seq, id)
     < (:before_at, :before_conversation, :before_subject, :before_seq, :before_id)
   AND (CAST(:only AS text) = ''
        OR (CAST(:only AS text) = 'waiting' AND substr(reason, 1, 7) = 'waiting')
        OR (CAST(:only AS text) = 'refused' AND substr(reason, 1, 7) <> 'waiting' AND substr(reason, 1, 8) <> 'accepted'))
 ORDER BY recorded_at DESC, conversation DESC, subject DESC, seq DESC, id DESC
 LIMIT :limit;

-- name: add_rejected
INSERT INTO rejected (org, user_id, bot, subject, conversation, seq, id, reason, claim, recorded_at)
VALUES (:org, :user_id, :bot, :subject, :conversation, :seq, :id, :reason, :claim, :recorded_at)
ON CONFLICT (org, user_id, bot, subject, conversation, seq, id) DO NOTHING;

-- name: decide_rejected
UPDATE rejected
   SET reason = :reason
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND seq = :seq AND id = :id;
