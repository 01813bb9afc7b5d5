-- Looks across users, for workers and operators.  They read keys and states, never text, and take
-- no lock: later statements name the user again.

-- name: jobs
-- Ids sort by time.  A null state means all; a ready job with a reason to wait is in the state 'waiting'.
SELECT org, user_id, bot, id, kind, key, subject, conversation, state, wanted, attempt, fence,
       run_at, lease_until, worker, reason, created_at
  FROM job
 WHERE id > :after
   AND (CAST(:state AS text) IS NULL
        OR :state = CASE WHEN state = 'ready' AND run_at > :now_ms AND substr(reason, 1, 8) = 'waiting:'
                         THEN 'waiting' ELSE state END)
 ORDER BY id
 LIMIT :limit;

-- name: job_by_id
SELECT org, user_id, bot, id, kind, key, subject, conversation, state, wanted, attempt, fence,
       run_at, lease_until, worker, reason, created_at
  FROM job
 WHERE id = :id;

-- name: backlog
-- By kind and state: how many, how many of them are due and overdue, and since when the oldest is due.  What runs is due
-- again when its lease has ended.
SELECT kind,
       CASE WHEN state = 'ready' AND run_at > :now_ms AND substr(reason, 1, 8) = 'waiting:' THEN 'waiting' ELSE state END,
       COUNT(*),
       SUM(CASE WHEN (state = 'ready' AND run_at <= :now_ms) OR (state = 'running' AND lease_until <= :now_ms)
                THEN 1 ELSE 0 END),
       SUM(CASE WHEN state = 'ready' AND run_at < :late_ms THEN 1 ELSE 0 END),
       MIN(CASE WHEN state = 'ready' AND run_at <= :now_ms THEN run_at
                WHEN state = 'running' AND lease_until <= :now_ms THEN lease_until END)
  FROM job
 GROUP BY 1, 2
 ORDER BY 1, 2;

-- name: job_owner
SELECT org, user_id, bot
  FROM job
 WHERE id = :id;

-- name: next_due
-- When the earliest job is due, and when the earliest lease ends.
SELECT (SELECT MIN(run_at) FROM job WHERE state = 'ready'), (SELECT MIN(lease_until) FROM job WHERE state = 'running');

-- name: oldest_due
-- Of one kind of work of an org.
SELECT user_id, bot, id, run_at
  FROM job
 WHERE state = 'ready' AND org = :org AND kind = :kind AND run_at <= :now_ms
 ORDER BY run_at, id
 LIMIT :limit;

-- name: newest_due
SELECT user_id, bot, id, run_at
  FROM job
 WHERE state = 'ready' AND org = :org AND kind = :kind AND run_at <= :now_ms
 ORDER BY run_at DESC, id DESC
 LIMIT :limit;

-- name: users
SELECT org, user_id, bot
  FROM user_state
 ORDER BY org, user_id, bot
 LIMIT :limit;

-- name: users_after
SELECT org, user_id, bot
  FROM user_state
 WHERE (org, user_id, bot) > (:org, :user_id, :bot)
 ORDER BY org, user_id, bot
 LIMIT :limit;

-- name: users_sorted
-- By their newest message or their conversations.  This reads a row of every conversation.
SELECT org, user_id, bot
  FROM conversation
 WHERE conversation <> :by_hand
   AND (CAST(:org AS text) IS NULL OR org = :org)
   AND (CAST(:exact AS text) = ''
        OR replace(lower(org || ' ' || user_id || ' ' || bot), :lowered, '') <> lower(org || ' ' || user_id || ' ' || bot)
        OR replace(org || ' ' || user_id || ' ' || bot, :exact, '') <> org || ' ' || user_id || ' ' || bot)
 GROUP BY org, user_id, bot
 ORDER BY CASE CAST(:sort AS text) WHEN 'newest' THEN -max(last_at) WHEN 'oldest' THEN max(last_at) ELSE -count(*) END,
          org, user_id, bot
 LIMIT :limit OFFSET :skip;

-- name: conversations_containing
-- Conversations whose names hold the words, of the users of one range of keys.
SELECT org, user_id, bot, subject, conversation
  FROM conversation
 WHERE (org, user_id, bot) > (:org, :user_id, :bot) AND (org, user_id, bot) <= (:last_org, :last_user, :last_bot)
   AND (replace(lower(conversation), :lowered, '') <> lower(conversation)
        OR replace(conversation, :exact, '') <> conversation)
 ORDER BY org, user_id, bot, subject, conversation
 LIMIT :limit;

-- name: users_to_embed
-- Two ranges, since an index cannot look for what differs.  Users who have such a job, in any state, are left out.
SELECT p.org, p.user_id, p.bot
  FROM user_state p
 WHERE p.embedder < :embedder
   AND NOT EXISTS (SELECT 1 FROM job j
                    WHERE j.org = p.org AND j.user_id = p.user_id AND j.bot = p.bot AND j.kind = 'embed')
UNION ALL
SELECT p.org, p.user_id, p.bot
  FROM user_state p
 WHERE p.embedder > :embedder
   AND NOT EXISTS (SELECT 1 FROM job j
                    WHERE j.org = p.org AND j.user_id = p.user_id AND j.bot = p.bot AND j.kind = 'embed')
 LIMIT :limit;

-- name: users_with_faded
-- Users of sentences and events that nobody said, learned, or used for long; the stronger, the longer.  Users who have
-- an upkeep job, in any state, are left out.
SELECT DISTINCT f.org, f.user_id, f.bot
  FROM fact f
 WHERE f.valid_to IS NULL AND f.kind <> 'attribute' AND f.lifetime <> 'permanent' AND f.importance < 0.8 AND f.source <> 'by hand'
   AND f.stated_at <= :once AND f.recorded_at <= :once AND (f.last_used_at IS NULL OR f.last_used_at <= :once)
   AND (f.strength <= 1
        OR f.strength <= 4 AND f.stated_at <= :seldom AND f.recorded_at <= :seldom
           AND (f.last_used_at IS NULL OR f.last_used_at <= :seldom)
        OR f.strength <= 64 AND f.stated_at <= :often AND f.recorded_at <= :often
           AND (f.last_used_at IS NULL OR f.last_used_at <= :often))
   AND NOT EXISTS (SELECT 1 FROM job j
                    WHERE j.org = f.org AND j.user_id = f.user_id AND j.bot = f.bot AND j.kind = 'upkeep')
 LIMIT :limit;

-- name: rows_per_table
SELECT 'user', COUNT(*) FROM user_state
UNION ALL SELECT 'conversation', COUNT(*) FROM conversation
UNION ALL SELECT 'message', COUNT(*) FROM message
UNION ALL SELECT 'idempotency', COUNT(*) FROM idempotency
UNION ALL SELECT 'coverage', COUNT(*) FROM coverage
UNION ALL SELECT 'summary', COUNT(*) FROM summary
UNION ALL SELECT 'fact', COUNT(*) FROM fact
UNION ALL SELECT 'evidence', COUNT(*) FROM evidence
UNION ALL SELECT 'rejected', COUNT(*) FROM rejected
UNION ALL SELECT 'derivation', COUNT(*) FROM derivation
UNION ALL SELECT 'doc', COUNT(*) FROM doc
UNION ALL SELECT 'segment', COUNT(*) FROM segment
UNION ALL SELECT 'vector', COUNT(*) FROM vector
UNION ALL SELECT 'job', COUNT(*) FROM job
UNION ALL SELECT 'prefix', COUNT(*) FROM prefix
UNION ALL SELECT 'consent', COUNT(*) FROM consent
UNION ALL SELECT 'blocked_topic', COUNT(*) FROM blocked_topic
UNION ALL SELECT 'subject', COUNT(*) FROM subject
UNION ALL SELECT 'rebuild', COUNT(*) FROM rebuild
UNION ALL SELECT 'read_range', COUNT(*) FROM read_range
UNION ALL SELECT 'usage', COUNT(*) FROM usage
UNION ALL SELECT 'prompt', COUNT(*) FROM prompt
UNION ALL SELECT 'context_stats', COUNT(*) FROM context_stats
UNION ALL SELECT 'item', COUNT(*) FROM item
UNION ALL SELECT 'erasure', COUNT(*) FROM erasure
UNION ALL SELECT 'provider_key', COUNT(*) FROM provider_key
UNION ALL SELECT 'event', COUNT(*) FROM event;

-- name: any_provider_key
SELECT 1 FROM provider_key LIMIT 1;

-- name: keys_to_reseal
SELECT org, user_id, id, provider, model, base_url, master, sealed, print, set_at
  FROM provider_key
 WHERE master <> :master
 ORDER BY org, user_id, id
 LIMIT :limit;

-- name: usage_across
-- Counters summed over what :by_… leaves out; a null org, user_id or bot means all.
SELECT CASE CAST(:by_org AS integer) WHEN 1 THEN org ELSE '' END,
       CASE CAST(:by_user AS integer) WHEN 1 THEN user_id ELSE '' END,
       CASE CAST(:by_bot AS integer) WHEN 1 THEN bot ELSE '' END,
       CASE CAST(:by_day AS integer) WHEN 1 THEN day ELSE '' END,
       CASE CAST(:by_layer AS integer) WHEN 1 THEN layer ELSE '' END,
       CASE CAST(:by_model AS integer) WHEN 1 THEN model ELSE '' END,
       SUM(calls), SUM(failed), SUM(input_tokens), SUM(output_tokens), SUM(cached_tokens), SUM(cost), SUM(unpriced)
  FROM usage
 WHERE day >= :since AND day <= :until
   AND (CAST(:org AS text) IS NULL OR org = :org)
   AND (CAST(:user_id AS text) IS NULL OR user_id = :user_id)
   AND (CAST(:bot AS text) IS NULL OR bot = :bot)
 GROUP BY 1, 2, 3, 4, 5, 6
 ORDER BY 1, 2, 3, 4, 5, 6;

-- name: waiting_jobs
-- Waiting jobs, by the words that their reason begins with.
SELECT org, user_id, bot, id
  FROM job
 WHERE state = 'ready' AND run_at > :now_ms AND substr(reason, 1, 8) = 'waiting:'
 LIMIT :limit;

-- name: newest_events
-- Of all users, of one kind, or of every change but those of jobs where :kind is null.  Facts entered by hand are no messages.
SELECT number, at, kind, actor, org, user_id, bot, subject, conversation, ref
  FROM event
 WHERE at >= :since_ms AND user_id <> '' AND NOT (kind = 'message.added' AND conversation = :by_hand)
   AND (kind = :kind OR (CAST(:kind AS text) IS NULL AND substr(kind, 1, 4) <> 'job.' AND kind <> 'memory.read'))
 ORDER BY at DESC, org, user_id, bot, number DESC
 LIMIT :limit;
