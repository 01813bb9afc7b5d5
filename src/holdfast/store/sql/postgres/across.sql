-- Looks across users that PostgreSQL spells in its own way.  :kinds is a JSON list of kinds, [] for all of them.

-- name: due_ready
SELECT org, user_id, bot, id, state, fence, attempt, run_at AS due_at, created_at
  FROM job
 WHERE state = 'ready' AND run_at <= :now_ms
   AND (:kinds = '[]' OR kind IN (SELECT jsonb_array_elements_text(CAST(:kinds AS jsonb))))
 ORDER BY run_at, created_at, id
 LIMIT :limit;

-- name: due_newest
SELECT org, user_id, bot, id, state, fence, attempt, run_at AS due_at, created_at
  FROM job
 WHERE state = 'ready' AND run_at <= :now_ms
   AND (:kinds = '[]' OR kind IN (SELECT jsonb_array_elements_text(CAST(:kinds AS jsonb))))
 ORDER BY run_at DESC, created_at DESC, id DESC
 LIMIT :limit;

-- name: due_expired
-- Running jobs whose worker has not been heard of until its lease ended.
SELECT org, user_id, bot, id, state, fence, attempt, lease_until AS due_at, created_at
  FROM job
 WHERE state = 'running' AND lease_until <= :now_ms
   AND (:kinds = '[]' OR kind IN (SELECT jsonb_array_elements_text(CAST(:kinds AS jsonb))))
 ORDER BY lease_until, created_at, id
 LIMIT :limit;

-- name: file_bytes
SELECT 'bytes', pg_database_size(current_database());

-- name: cluster_bytes
-- Of all nodes of a cluster.
SELECT 'bytes', CAST(SUM(CAST(result AS bigint)) AS bigint)
  FROM run_command_on_all_nodes('SELECT pg_database_size(current_database())')
 WHERE success;

-- name: snapshot
SELECT CAST(pg_current_snapshot() AS text);
