-- Long work that requests ordered.  A row has figures, ids and states, and no word that anybody said.

-- name: order
SELECT org, user_id, bot, subject, conversation, id, kind, state, done, total, code, reason, report, once, asked, stop, created, seen, ended
  FROM task
 WHERE id = :id;

-- name: order_once
SELECT org, user_id, bot, subject, conversation, id, kind, state, done, total, code, reason, report, once, asked, stop, created, seen, ended
  FROM task
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND once = :once
 ORDER BY created DESC, id DESC
 LIMIT 1;

-- name: orders_newest
SELECT org, user_id, bot, subject, conversation, id, kind, state, done, total, code, reason, report, once, asked, stop, created, seen, ended
  FROM task
 ORDER BY created DESC, id DESC
 LIMIT :limit;

-- name: orders_of
SELECT org, user_id, bot, subject, conversation, id, kind, state, done, total, code, reason, report, once, asked, stop, created, seen, ended
  FROM task
 WHERE org = :org AND user_id = :user_id AND bot = :bot
 ORDER BY created DESC, id DESC
 LIMIT :limit;

-- name: add_order
INSERT INTO task (org, user_id, bot, subject, conversation, id, kind, state, done, total, code, reason, report, once, asked, stop, created, seen, ended)
VALUES (:org, :user_id, :bot, :subject, :conversation, :id, :kind, :state, :done, :total, :code, :reason, :report, :once,
        :asked, :stop, :created, :seen, :ended);

-- name: save_order
UPDATE task
   SET state = :state, done = :done, total = :total, code = :code, reason = :reason, report = :report, seen = :seen,
       ended = :ended
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id
RETURNING stop;

-- name: stop_order
UPDATE task
   SET stop = 1
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id AND ended IS NULL
RETURNING id;

-- name: remove_old_orders
DELETE FROM task
 WHERE org = :org AND ended < :before;
