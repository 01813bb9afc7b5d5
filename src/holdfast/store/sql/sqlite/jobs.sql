-- Looks for one user's due work.  :kinds is a JSON list of kinds, those in front first; [] for all of them.

-- name: due_of_user
-- A null conversation means all of them and for work on the user as a whole.  Work may be begun before it is due,
-- at :soon_ms; a lease runs until :now_ms is there.
SELECT org, user_id, bot, id, state, fence, attempt,
       CASE state WHEN 'ready' THEN run_at ELSE lease_until END AS due_at, created_at
  FROM job
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND (CAST(:conversation AS text) IS NULL OR (subject = :subject AND conversation = :conversation))
   AND ((state = 'ready' AND run_at <= :soon_ms) OR (state = 'running' AND lease_until <= :now_ms))
   AND (:kinds = '[]' OR kind IN (SELECT value FROM json_each(:kinds)))
 ORDER BY instr(:kinds, '"' || kind || '"'), due_at, created_at, id
 LIMIT :limit;
