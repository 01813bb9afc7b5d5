-- The ledger of erasures: digests, numbers and times, of all users together.

-- name: ledger_key
SELECT key FROM ledger_key WHERE one = 1;

-- name: add_ledger_key
INSERT INTO ledger_key (one, key)
VALUES (1, :key)
ON CONFLICT (one) DO NOTHING;

-- name: erasures
SELECT id, place, kind, seq, fact, spans, at
  FROM erasure
 ORDER BY id;

-- name: is_in_ledger
SELECT 1 FROM erasure WHERE id = :id;

-- name: add_erasure
INSERT INTO erasure (id, place, kind, seq, fact, spans, at)
VALUES (:id, :place, :kind, :seq, :fact, :spans, :at)
ON CONFLICT (id) DO NOTHING;

-- name: all_consent
SELECT org, user_id, bot, subject, state, since
  FROM consent
 ORDER BY org, user_id, bot, subject;
