-- Keys of those who ask over the network.  They belong to an org, not to a user's memory.

-- name: key
SELECT org, id, digest, role, user_id, bot, subject, label, created, expires, revoked, parent
  FROM api_key
 WHERE id = :id;

-- name: keys
-- A null org means all.
SELECT org, id, digest, role, user_id, bot, subject, label, created, expires, revoked, parent
  FROM api_key
 WHERE CAST(:org AS text) IS NULL OR org = :org
 ORDER BY created, id;

-- name: add_key
INSERT INTO api_key (org, id, digest, role, user_id, bot, subject, label, created, expires, revoked, parent)
VALUES (:org, :id, :digest, :role, :user_id, :bot, :subject, :label, :created, :expires, :revoked, :parent);

-- name: revoke_key
-- With the keys that were made from it: the browsers that are signed in with it.
UPDATE api_key
   SET revoked = :revoked
 WHERE org = :org AND (id = :id OR parent = :id) AND revoked IS NULL
RETURNING id;

-- name: remove_expired_keys
-- Tokens that expired long ago are of no use.
DELETE FROM api_key
 WHERE org = :org AND expires < :before;

-- name: allowances
SELECT key_id, period, messages
  FROM allowance
 WHERE org = :org
 ORDER BY period, key_id;

-- name: spend
-- The sum after it is looked at in the same transaction, which ends without a trace when it is too much.
INSERT INTO allowance (org, key_id, period, messages)
VALUES (:org, :key_id, :period, :messages)
    ON CONFLICT (org, key_id, period) DO UPDATE SET messages = allowance.messages + excluded.messages
RETURNING messages;

-- name: remove_old_allowances
DELETE FROM allowance
 WHERE org = :org AND period < :before;
