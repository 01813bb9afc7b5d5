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

-- name: due_lanes
-- A lane is a kind of work of an org: when its first job is due or was, of lanes behind (:org, :kind).  The index is read
-- once a lane, however many jobs wait in it.
WITH RECURSIVE lane (org, kind, first, number) AS (
    (SELECT org, kind, run_at, 1
       FROM job
      WHERE state = 'ready' AND (org, kind) > (:org, :kind)
      ORDER BY org, kind, run_at
      LIMIT 1)
    UNION ALL
    SELECT n.org, n.kind, n.run_at, lane.number + 1
      FROM lane,
           LATERAL (SELECT j.org, j.kind, j.run_at
                      FROM job j
                     WHERE j.state = 'ready' AND (j.org, j.kind) > (lane.org, lane.kind)
                     ORDER BY j.org, j.kind, j.run_at
                     LIMIT 1) n
     WHERE lane.number < :limit)
SELECT org, kind, first FROM lane;

-- name: take_due
-- The oldest of a lane that no other worker is about to take, and whose user has no due work of the kinds :before.
WITH due AS MATERIALIZED (
    SELECT w.user_id, w.bot, w.id
      FROM job w
     WHERE w.state = 'ready' AND w.org = :org AND w.kind = :kind AND w.run_at <= :now_ms
       AND (:before = '[]' OR NOT EXISTS (
            SELECT 1 FROM job e
             WHERE e.org = :org AND e.user_id = w.user_id AND e.bot = w.bot AND e.state = 'ready' AND e.run_at <= :now_ms
               AND e.kind IN (SELECT jsonb_array_elements_text(CAST(:before AS jsonb)))))
     ORDER BY w.run_at, w.id
     LIMIT :limit
       FOR UPDATE OF w SKIP LOCKED)
UPDATE job j
   SET state = 'running', attempt = j.attempt + 1, fence = j.fence + 1, lease_until = :lease_until, worker = :worker
  FROM due
 WHERE j.org = :org AND j.user_id = due.user_id AND j.bot = due.bot AND j.id = due.id
RETURNING j.org, j.user_id, j.bot, j.id, j.kind, j.key, j.subject, j.conversation, j.state, j.wanted, j.attempt, j.fence,
       j.run_at, j.lease_until, j.worker, j.reason, j.created_at;

-- name: take_these
-- The first so many of a JSON list of (user_id, bot, id) that no other worker has taken or is about to, as `take_due`
-- takes them.
WITH due AS MATERIALIZED (
    SELECT w.user_id, w.bot, w.id
      FROM jsonb_array_elements(CAST(:wanted AS jsonb)) WITH ORDINALITY AS g (job, place)
      JOIN job w ON w.org = :org AND w.user_id = g.job ->> 0 AND w.bot = g.job ->> 1 AND w.id = g.job ->> 2
     WHERE w.state = 'ready' AND w.run_at <= :now_ms
       AND (:before = '[]' OR NOT EXISTS (
            SELECT 1 FROM job e
             WHERE e.org = :org AND e.user_id = w.user_id AND e.bot = w.bot AND e.state = 'ready' AND e.run_at <= :now_ms
               AND e.kind IN (SELECT jsonb_array_elements_text(CAST(:before AS jsonb)))))
     ORDER BY g.place
     LIMIT :limit
       FOR UPDATE OF w SKIP LOCKED)
UPDATE job j
   SET state = 'running', attempt = j.attempt + 1, fence = j.fence + 1, lease_until = :lease_until, worker = :worker
  FROM due
 WHERE j.org = :org AND j.user_id = due.user_id AND j.bot = due.bot AND j.id = due.id
RETURNING j.org, j.user_id, j.bot, j.id, j.kind, j.key, j.subject, j.conversation, j.state, j.wanted, j.attempt, j.fence,
       j.run_at, j.lease_until, j.worker, j.reason, j.created_at;

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
-- entered by hand are no messages.  The context of a reply counts by whether its stable part was that of the reply before it in the
-- conversation.  A null org, bot or user_id means all.
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
 UNION ALL
SELECT org, bot, at / 86400000, CASE WHEN prefix = prior THEN 'context.reused' ELSE 'context.changed' END,
       COUNT(*), COUNT(DISTINCT user_id)
  FROM (SELECT org, user_id, bot, at, prefix,
               LAG(prefix) OVER (PARTITION BY org, user_id, bot, subject, conversation, strategy ORDER BY seq) AS prior
          FROM context_stats
         WHERE at < :until_ms
           AND (CAST(:org AS text) IS NULL OR org = :org)
           AND (CAST(:bot AS text) IS NULL OR bot = :bot)
           AND (CAST(:user_id AS text) IS NULL OR user_id = :user_id)) sent
 WHERE at >= :since_ms AND prior IS NOT NULL
 GROUP BY 1, 2, 3, 4
 ORDER BY 1, 2, 3, 4;

-- name: users_matching
-- Whose org, name or bot holds the words; :lowered is in small letters.  This reads the key of every user, and no more.
SELECT org, user_id, bot
  FROM user_state
 WHERE (org, user_id, bot) > (:org, :user_id, :bot)
   AND (strpos(lower(org || ' ' || user_id || ' ' || bot), :lowered) > 0 OR strpos(org || ' ' || user_id || ' ' || bot, :exact) > 0)
 ORDER BY org, user_id, bot
 LIMIT :limit;

-- name: facts_containing
-- Active facts that hold each of a JSON list of words (in small letters, as given), of the users of one range of keys.
SELECT org, user_id, bot, id
  FROM fact
 WHERE (org, user_id, bot) > (:org, :user_id, :bot) AND (org, user_id, bot) <= (:last_org, :last_user, :last_bot)
   AND valid_to IS NULL
   AND NOT EXISTS (SELECT 1 FROM jsonb_array_elements(CAST(:each AS jsonb)) w (value)
                    WHERE strpos(lower(text), w.value ->> 0) = 0
                      AND strpos(text, w.value ->> 1) = 0)
 ORDER BY org, user_id, bot, subject, id
 LIMIT :limit;
