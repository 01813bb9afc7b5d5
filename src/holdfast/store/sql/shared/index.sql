-- The search index: documents with their words, and their vectors.  A partition is (subject, kind).

-- name: message_subjects
SELECT DISTINCT subject
  FROM conversation
 WHERE org = :org AND user_id = :user_id AND bot = :bot
 ORDER BY subject;

-- name: fact_subjects
SELECT DISTINCT subject
  FROM fact
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND valid_to IS NULL
 ORDER BY subject;

-- name: docs
-- :shared = 1 keeps only what was said in a conversation about no subject in particular.
SELECT subject, kind, doc, conversation, seq, ref, session, speaker, role, at, terms, chars, signals, unscoped, embedded
  FROM doc
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND kind = :kind
   AND (:shared = 0 OR unscoped = 1)
 ORDER BY doc;

-- name: doc_columns
-- The same documents without what is equal in all of them; the order is that of values.COLUMNS.
-- Where, by what role and by whom come in one text, since few differ, and three small numbers in one: each column
-- of many rows takes its time.  Signs come only of vectors by :embedder.  :first and :last bound the numbers.
SELECT doc, conversation || :separator || role || :separator || speaker AS said, seq, ref, session, at,
       (terms * 67108864 + chars) * 64 + signals AS sizes,
       words, CASE WHEN embedded = :embedder THEN signs END AS signs
  FROM doc
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND kind = :kind
   AND doc BETWEEN :first AND :last AND (:shared = 0 OR unscoped = 1)
 ORDER BY doc;

-- name: segments
-- The signs are of vectors by the embedder.
SELECT first_doc, last_doc, embedder, data
  FROM segment
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND kind = :kind
 ORDER BY first_doc;

-- name: segment_ranges
SELECT first_doc, last_doc
  FROM segment
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND kind = :kind
 ORDER BY first_doc;

-- name: unsealed
-- As doc_columns, but the signs are of any embedder, which is told.
SELECT doc, conversation || :separator || role || :separator || speaker AS said, seq, ref, session, at,
       (terms * 67108864 + chars) * 64 + signals AS sizes, words, signs, embedded, terms
  FROM doc
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND kind = :kind
   AND doc BETWEEN :first AND :last
 ORDER BY doc
 LIMIT :limit;

-- name: add_segment
INSERT INTO segment
       (org, user_id, bot, subject, kind, first_doc, last_doc, docs, terms, embedder, data)
VALUES (:org, :user_id, :bot, :subject, :kind, :first_doc, :last_doc, :docs, :terms, :embedder, :data);

-- name: remove_segment
DELETE FROM segment
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND kind = :kind AND first_doc = :first;

-- name: vectors
SELECT doc, scale, data
  FROM vector
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND kind = :kind AND embedder = :embedder AND doc >= :first
 ORDER BY doc;

-- name: vector_of
SELECT doc, scale, data
  FROM vector
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND kind = :kind AND embedder = :embedder AND doc = :doc;

-- name: vectors_shared
SELECT v.doc, v.scale, v.data
  FROM vector v
  JOIN doc d ON d.org = v.org AND d.user_id = v.user_id AND d.bot = v.bot
   AND d.subject = v.subject AND d.kind = v.kind AND d.doc = v.doc
 WHERE v.org = :org AND v.user_id = :user_id AND v.bot = :bot
   AND v.subject = :subject AND v.kind = :kind AND v.embedder = :embedder AND v.doc >= :first
   AND d.unscoped = 1
 ORDER BY v.doc;

-- name: unembedded
SELECT subject, kind, doc, conversation, seq, ref, session, speaker, role, at, terms, chars, signals, unscoped, embedded
  FROM doc
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND embedded <> :embedder
 ORDER BY doc, subject, kind
 LIMIT :limit;

-- name: doc_embedded
SELECT subject, kind, doc, embedded
  FROM doc
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND kind = :kind AND doc = :doc;

-- name: add_doc
INSERT INTO doc
       (org, user_id, bot, subject, kind, doc, conversation, seq, ref, session, speaker, role, at,
        terms, chars, signals, unscoped, embedded, words)
VALUES (:org, :user_id, :bot, :subject, :kind, :doc, :conversation, :seq, :ref, :session, :speaker, :role, :at,
        :terms, :chars, :signals, :unscoped, :embedded, :words);

-- name: add_vector
INSERT INTO vector (org, user_id, bot, subject, kind, embedder, doc, scale, data)
VALUES (:org, :user_id, :bot, :subject, :kind, :embedder, :doc, :scale, :data)
ON CONFLICT (org, user_id, bot, subject, kind, embedder, doc) DO UPDATE
   SET scale = excluded.scale,
       data  = excluded.data;

-- name: mark_embedded
UPDATE doc
   SET embedded = :embedded, signs = :signs
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND kind = :kind AND doc = :doc;

-- name: remove_vector
DELETE FROM vector
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND kind = :kind AND embedder = :embedder AND doc = :doc;

-- name: remove_doc
DELETE FROM doc
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND kind = :kind AND doc = :doc;
