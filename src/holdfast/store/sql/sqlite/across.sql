-- Looks for due work.  :kinds is a JSON list of kinds, [] for all of them.

-- name: due_ready
SELECT org, user_id, bot, id, state, fence, attempt, run_at AS due_at, created_at
  FROM job
 WHERE state = 'ready' AND run_at <= :now_ms
   AND (:kinds = '[]' OR kind IN (SELECT value FROM json_each(:kinds)))
 ORDER BY run_at, created_at, id
 LIMIT :limit;

-- name: due_expired
-- Running jobs whose worker has not been heard of until its lease ended.
SELECT org, user_id, bot, id, state, fence, attempt, lease_until AS due_at, created_at
  FROM job
 WHERE state = 'running' AND lease_until <= :now_ms
   AND (:kinds = '[]' OR kind IN (SELECT value FROM json_each(:kinds)))
 ORDER BY lease_until, created_at, id
 LIMIT :limit;

-- name: integrity
-- SQLite's own opinion of the file: one row "ok", or a row a fault.
PRAGMA integrity_check(100);

-- name: file_bytes
SELECT 'bytes', c.page_count * s.page_size FROM pragma_page_count() c, pragma_page_size() s;
