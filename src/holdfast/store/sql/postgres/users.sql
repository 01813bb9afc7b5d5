-- Writers of one user take turns at the user's row; one who has none yet gets a row for the turn.

-- name: lock_user
SELECT next_doc
  FROM user_state
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   FOR UPDATE;

-- name: lock_new_user
INSERT INTO user_state (org, user_id, bot, next_doc, version, epoch, created_at)
VALUES (:org, :user_id, :bot, 1, 0, 0, :created_at)
ON CONFLICT (org, user_id, bot) DO NOTHING
RETURNING next_doc;

-- name: remove_turn_row
DELETE FROM user_state
 WHERE org = :org AND user_id = :user_id AND bot = :bot;
