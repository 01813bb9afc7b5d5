-- The state of agent frameworks: opaque values by name, in a conversation or, with '' as its name, of the user.

-- name: items
-- Names from :first up to but not including :stop.
SELECT name, value, created_at, updated_at, expires_at
  FROM item
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND space = :space
   AND name >= :first AND name < :stop
 ORDER BY name
 LIMIT :limit;

-- name: item_homes
-- Where the user has items of the space.
SELECT DISTINCT subject, conversation
  FROM item
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (CAST(:space AS text) IS NULL OR space = :space)
 ORDER BY subject, conversation;

-- name: every_item
SELECT subject, conversation, space, name, value, created_at, updated_at, expires_at
  FROM item
 WHERE org = :org AND user_id = :user_id AND bot = :bot
 ORDER BY subject, conversation, space, name;

-- name: save_item
INSERT INTO item (org, user_id, bot, subject, conversation, space, name, value, created_at, updated_at, expires_at)
VALUES (:org, :user_id, :bot, :subject, :conversation, :space, :name, :value, :created_at, :updated_at, :expires_at)
ON CONFLICT (org, user_id, bot, subject, conversation, space, name) DO UPDATE
   SET value = excluded.value, updated_at = excluded.updated_at, expires_at = excluded.expires_at;

-- name: remove_items
DELETE FROM item
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND space = :space
   AND name >= :first AND name < :stop
RETURNING name;

-- name: remove_expired_items
DELETE FROM item
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation AND space = :space
   AND expires_at <= :now_ms;

-- name: clear_item
DELETE FROM item
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND subject = :subject AND conversation = :conversation
RETURNING name;

-- name: erase_item
DELETE FROM item
 WHERE org = :org AND user_id = :user_id AND bot = :bot;

-- name: transfer_item
UPDATE item
   SET subject = :into, conversation = :name
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;
