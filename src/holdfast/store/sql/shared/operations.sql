-- Long work that requests ordered.  A row has figures, ids and states, and no word that anybody said.

-- name: operation
SELECT org, user_id, bot, subject, conversation, id, kind, state, done, total, code, reason, report, once, request, stop, created_at, seen_at, ended_at
  FROM operation
 WHERE id = :id;

-- name: operation_by_key
SELECT org, user_id, bot, subject, conversation, id, kind, state, done, total, code, reason, report, once, request, stop, created_at, seen_at, ended_at
  FROM operation
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND once = :once
 ORDER BY created_at DESC, id DESC
 LIMIT 1;

-- name: operations_newest
SELECT org, user_id, bot, subject, conversation, id, kind, state, done, total, code, reason, report, once, request, stop, created_at, seen_at, ended_at
  FROM operation
 ORDER BY created_at DESC, id DESC
 LIMIT :limit;

-- name: operations_of
SELECT org, user_id, bot, subject, conversation, id, kind, state, done, total, code, reason, report, once, request, stop, created_at, seen_at, ended_at
  FROM operation
 WHERE org = :org AND user_id = :user_id AND bot = :bot
 ORDER BY created_at DESC, id DESC
 LIMIT :limit;

-- name: add_operation
INSERT INTO operation (org, user_id, bot, subject, conversation, id, kind, state, done, total, code, reason, report, once, request, stop, created_at, seen_at, ended_at)
VALUES (:org, :user_id, :bot, :subject, :conversation, :id, :kind, :state, :done, :total, :code, :reason, :report, :once,
        :request, :stop, :created_at, :seen_at, :ended_at);

-- name: save_operation
UPDATE operation
   SET state = :state, done = :done, total = :total, code = :code, reason = :reason, report = :report, seen_at = :seen_at,
       ended_at = :ended_at
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id
RETURNING stop;

-- name: stop_operation
UPDATE operation
   SET stop = 1
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id AND ended_at IS NULL
RETURNING id;

-- name: remove_old_operations
DELETE FROM operation
 WHERE org = :org AND ended_at < :before;
