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

-- name: activity
-- Events by org, bot, day since 1970 and kind: how many, and of how many users.  One event may add several messages ("7-8"); facts
-- entered by hand are no messages.  A null org, bot or user_id means all.
SELECT org, bot, at / 86400000, kind,
       SUM(CASE WHEN kind = 'message.added' AND strpos(ref, '-') > 0
                THEN CAST(substr(ref, strpos(ref, '-') + 1) AS integer) - CAST(substr(ref, 1, strpos(ref, '-') - 1) AS integer) + 1
                ELSE 1 END),
       COUNT(DISTINCT user_id)
  FROM event
 WHERE at >= :since_ms AND at < :until_ms AND NOT (kind = 'message.added' AND conversation = :by_hand)
   AND (CAST(:org AS text) IS NULL OR org = :org)
   AND (CAST(:bot AS text) IS NULL OR bot = :bot)
   AND (CAST(:user_id AS text) IS NULL OR user_id = :user_id)
 GROUP BY 1, 2, 3, 4
 ORDER BY 1, 2, 3, 4;
