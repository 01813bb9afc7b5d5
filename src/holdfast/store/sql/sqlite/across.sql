-- Looks for due work.  :kinds is a JSON list of kinds, [] for all of them.

-- name: due_ready
SELECT org, user_id, bot, id, state, fence, attempt, run_at AS due_at, created_at
  FROM job
 WHERE state = 'ready' AND run_at <= :now_ms
   AND (:kinds = '[]' OR kind IN (SELECT value FROM json_each(:kinds)))
 ORDER BY run_at, created_at, id
 LIMIT :limit;

-- name: due_newest
SELECT org, user_id, bot, id, state, fence, attempt, run_at AS due_at, created_at
  FROM job
 WHERE state = 'ready' AND run_at <= :now_ms
   AND (:kinds = '[]' OR kind IN (SELECT value FROM json_each(:kinds)))
 ORDER BY run_at DESC, created_at DESC, id DESC
 LIMIT :limit;

-- name: due_expired
-- Running jobs whose worker has not been heard of until its lease ended.
SELECT org, user_id, bot, id, state, fence, attempt, lease_until AS due_at, created_at
  FROM job
 WHERE state = 'running' AND lease_until <= :now_ms
   AND (:kinds = '[]' OR kind IN (SELECT value FROM json_each(:kinds)))
 ORDER BY lease_until, created_at, id
 LIMIT :limit;

-- name: due_lanes
-- A lane is a kind of work of an org: when its first job is due or was, of lanes behind (:org, :kind).  The index is read
-- once a lane, however many jobs wait in it.
WITH RECURSIVE lane (org, kind, first, number) AS (
    SELECT org, kind, run_at, number
      FROM (SELECT org, kind, run_at, 1 AS number
              FROM job
             WHERE state = 'ready' AND (org, kind) > (:org, :kind)
             ORDER BY org, kind, run_at
             LIMIT 1)
    UNION ALL
    SELECT j.org, j.kind, j.run_at, lane.number + 1
      FROM lane
      JOIN job j
        ON (j.org, j.user_id, j.bot, j.id) = (SELECT n.org, n.user_id, n.bot, n.id
                                                FROM job n
                                               WHERE n.state = 'ready' AND (n.org, n.kind) > (lane.org, lane.kind)
                                               ORDER BY n.org, n.kind, n.run_at
                                               LIMIT 1)
     WHERE lane.number < :limit)
SELECT org, kind, first FROM lane;

-- name: take_due
-- The oldest of a lane whose user has no due work of the kinds :before.
UPDATE job
   SET state = 'running', attempt = attempt + 1, fence = fence + 1, lease_until = :lease_until, worker = :worker
 WHERE (org, user_id, bot, id) IN (SELECT w.org, w.user_id, w.bot, w.id
                                     FROM job w
                                    WHERE w.state = 'ready' AND w.org = :org AND w.kind = :kind AND w.run_at <= :now_ms
                                      AND (:before = '[]' OR NOT EXISTS (
                                           SELECT 1 FROM job e
                                            WHERE e.org = :org AND e.user_id = w.user_id AND e.bot = w.bot
                                              AND e.state = 'ready' AND e.run_at <= :now_ms
                                              AND e.kind IN (SELECT value FROM json_each(:before))))
                                    ORDER BY w.run_at, w.id
                                    LIMIT :limit)
RETURNING org, user_id, bot, id, kind, key, subject, conversation, state, wanted, attempt, fence,
       run_at, lease_until, worker, reason, created_at;

-- name: take_these
-- The first so many of a JSON list of (user_id, bot, id) that no other worker has taken, as `take_due` takes them.
UPDATE job
   SET state = 'running', attempt = attempt + 1, fence = fence + 1, lease_until = :lease_until, worker = :worker
 WHERE (org, user_id, bot, id) IN (SELECT j.org, j.user_id, j.bot, j.id
                                     FROM json_each(:wanted) g
                                     JOIN job j ON j.org = :org AND j.user_id = g.value ->> 0 AND j.bot = g.value ->> 1
                                               AND j.id = g.value ->> 2
                                    WHERE j.state = 'ready' AND j.run_at <= :now_ms
                                      AND (:before = '[]' OR NOT EXISTS (
                                           SELECT 1 FROM job e
                                            WHERE e.org = :org AND e.user_id = j.user_id AND e.bot = j.bot
                                              AND e.state = 'ready' AND e.run_at <= :now_ms
                                              AND e.kind IN (SELECT value FROM json_each(:before))))
                                    ORDER BY g.key
                                    LIMIT :limit)
RETURNING org, user_id, bot, id, kind, key, subject, conversation, state, wanted, attempt, fence,
       run_at, lease_until, worker, reason, created_at;

-- name: integrity
-- SQLite's own opinion of the file: one row "ok", or a row a fault.
PRAGMA integrity_check(100);

-- name: file_bytes
SELECT 'bytes', c.page_count * s.page_size FROM pragma_page_count() c, pragma_page_size() s;

-- name: still_stored
-- Whether any row holds :words; asked only about words that were found in the bytes after an erasure.
SELECT 1 FROM (SELECT 1 FROM message WHERE instr(content, :words) > 0 OR instr(meta, :words) > 0 OR instr(name, :words) > 0
 UNION ALL SELECT 1 FROM fact WHERE instr(value, :words) > 0 OR instr(text, :words) > 0 OR instr(slot_key, :words) > 0 OR instr(slot_value, :words) > 0
 UNION ALL SELECT 1 FROM evidence WHERE instr(quote, :words) > 0
 UNION ALL SELECT 1 FROM summary WHERE instr(text, :words) > 0 OR instr(themes, :words) > 0 OR instr(concerns, :words) > 0 OR instr(actions, :words) > 0
 UNION ALL SELECT 1 FROM rejected WHERE instr(claim, :words) > 0
 UNION ALL SELECT 1 FROM doc WHERE instr(words, :words) > 0
 UNION ALL SELECT 1 FROM segment WHERE instr(data, CAST(:words AS blob)) > 0
 UNION ALL SELECT 1 FROM blocked_topic WHERE instr(topic, :words) > 0
 UNION ALL SELECT 1 FROM subject WHERE instr(subject, :words) > 0 OR instr(name, :words) > 0 OR instr(aliases, :words) > 0
 UNION ALL SELECT 1 FROM prompt WHERE instr(text, :words) > 0
 UNION ALL SELECT 1 FROM usage WHERE instr(user_id, :words) > 0 OR instr(model, :words) > 0
 UNION ALL SELECT 1 FROM provider_key WHERE instr(user_id, :words) > 0 OR instr(model, :words) > 0 OR instr(base_url, :words) > 0
 UNION ALL SELECT 1 FROM conversation WHERE instr(conversation, :words) > 0
 UNION ALL SELECT 1 FROM user_state WHERE instr(user_id, :words) > 0
 UNION ALL SELECT 1 FROM consent WHERE instr(user_id, :words) > 0
 UNION ALL SELECT 1 FROM event WHERE instr(user_id, :words) > 0 OR instr(subject, :words) > 0 OR instr(conversation, :words) > 0 OR instr(ref, :words) > 0
 UNION ALL SELECT 1 FROM call_time WHERE instr(call, :words) > 0
 UNION ALL SELECT 1 FROM sqlite_schema WHERE instr(sql, :words) > 0)
 LIMIT 1;

-- name: activity
-- Events by org, bot, day since 1970 and kind: how many, and of how many users.  One event may add several messages ("7-8"); facts
-- entered by hand are no messages.  The context of a reply counts by whether its stable part was that of the reply before it in the
-- conversation.  A null org, bot or user_id means all.
SELECT org, bot, at / 86400000, kind,
       SUM(CASE WHEN kind = 'message.added' AND instr(ref, '-') > 0
                THEN CAST(substr(ref, instr(ref, '-') + 1) AS integer) - CAST(substr(ref, 1, instr(ref, '-') - 1) AS integer) + 1
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
   AND (instr(lower(org || ' ' || user_id || ' ' || bot), :lowered) > 0 OR instr(org || ' ' || user_id || ' ' || bot, :exact) > 0)
 ORDER BY org, user_id, bot
 LIMIT :limit;

-- name: facts_containing
-- Active facts that hold each of a JSON list of words (in small letters, as given), of the users of one range of keys.
SELECT org, user_id, bot, id
  FROM fact
 WHERE (org, user_id, bot) > (:org, :user_id, :bot) AND (org, user_id, bot) <= (:last_org, :last_user, :last_bot)
   AND valid_to IS NULL
   AND NOT EXISTS (SELECT 1 FROM json_each(:each) w
                    WHERE instr(lower(text), json_extract(w.value, '$[0]')) = 0
                      AND instr(text, json_extract(w.value, '$[1]')) = 0)
 ORDER BY org, user_id, bot, subject, id
 LIMIT :limit;
