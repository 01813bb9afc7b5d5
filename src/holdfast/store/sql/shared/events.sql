-- Events: rows without text, written in the transaction of the change.

-- name: newest_event
-- The user comes back, as this is asked for several at once.
SELECT org, user_id, bot, number
  FROM event
 WHERE org = :org AND user_id = :user_id AND bot = :bot
 ORDER BY number DESC
 LIMIT 1;

-- name: oldest_event
SELECT number
  FROM event
 WHERE org = :org AND user_id = :user_id AND bot = :bot
 ORDER BY number
 LIMIT 1;

-- name: events_after
SELECT number, at, kind, actor, subject, conversation, ref
  FROM event
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND number > :after
 ORDER BY number
 LIMIT :limit;

-- name: events_before
SELECT number, at, kind, actor, subject, conversation, ref
  FROM event
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND number < :before
 ORDER BY number DESC
 LIMIT :limit;

-- name: add_event
INSERT INTO event (org, user_id, bot, number, at, kind, actor, subject, conversation, ref)
VALUES (:org, :user_id, :bot, :number, :at, :kind, :actor, :subject, :conversation, :ref);

-- name: first_event_since
SELECT number
  FROM event
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND at >= :since
 ORDER BY number
 LIMIT 1;

-- name: remove_events
DELETE FROM event
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND number < :first;

-- name: blank_events_in
-- An erased conversation leaves the numbers of its events, not its name.
UPDATE event
   SET subject = '', conversation = '', ref = ''
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation;

-- name: blank_events_about
UPDATE event
   SET subject = '', conversation = '', ref = ''
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :about;

-- name: erase_event
DELETE FROM event
 WHERE org = :org AND user_id = :user_id AND bot = :bot;
