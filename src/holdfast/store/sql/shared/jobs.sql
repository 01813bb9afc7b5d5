-- Background work of one user.  Whoever changes a job names the fence (or the state) it read:
-- when another worker was faster, no row comes back and nothing has changed.

-- name: job_in_lane
SELECT org, user_id, bot, id, kind, key, subject, conversation, state, wanted, attempt, fence,
       run_at, lease_until, worker, reason, created_at
  FROM job
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND kind = :kind AND subject = :subject AND conversation = :conversation AND key = :key;

-- name: move_waiting_job
-- The common case of new work in a lane, in one step: the job waits there in its first attempt.
UPDATE job
   SET wanted = :wanted, run_at = :run_at
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND kind = :kind AND subject = :subject AND conversation = :conversation AND key = :key
   AND state = 'ready' AND attempt = 0 AND wanted <= :wanted
RETURNING id;

-- name: job
SELECT org, user_id, bot, id, kind, key, subject, conversation, state, wanted, attempt, fence,
       run_at, lease_until, worker, reason, created_at
  FROM job
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id;

-- name: jobs_of_user
SELECT org, user_id, bot, id, kind, key, subject, conversation, state, wanted, attempt, fence,
       run_at, lease_until, worker, reason, created_at
  FROM job
 WHERE org = :org AND user_id = :user_id AND bot = :bot
 ORDER BY created_at, id;

-- name: add_job
INSERT INTO job
       (org, user_id, bot, id, kind, key, subject, conversation, state, wanted, attempt, fence,
        run_at, lease_until, worker, reason, created_at)
VALUES (:org, :user_id, :bot, :id, :kind, :key, :subject, :conversation, 'ready', :wanted, 0, 0,
        :run_at, 0, '', '', :created_at);

-- name: move_job
UPDATE job
   SET wanted = :wanted, run_at = :run_at
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id;

-- name: take_job
UPDATE job
   SET state = 'running', attempt = :attempt, fence = :fence, lease_until = :lease_until, worker = :worker
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id
   AND state = :was_state AND fence = :was_fence
RETURNING org, user_id, bot, id, kind, key, subject, conversation, state, wanted, attempt, fence,
       run_at, lease_until, worker, reason, created_at;

-- name: renew_job
UPDATE job
   SET lease_until = :lease_until
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id AND state = 'running' AND fence = :fence
RETURNING id;

-- name: put_back_job
-- After a success with more to do, or after a failure: for a later run, or aside.
UPDATE job
   SET state = :state, attempt = :attempt, run_at = :run_at, lease_until = 0, worker = '', reason = :reason
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id AND state = 'running' AND fence = :fence
RETURNING id;

-- name: remove_job
DELETE FROM job
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id AND state = 'running' AND fence = :fence
RETURNING id;

-- name: remove_waiting_job
-- What it was for has been done beside it.
DELETE FROM job
 WHERE org = :org AND user_id = :user_id AND bot = :bot
   AND kind = :kind AND subject = :subject AND conversation = :conversation AND key = :key
   AND state = 'ready' AND attempt = 0
RETURNING id;

-- name: restart_job
UPDATE job
   SET state = 'ready', attempt = 0, run_at = :run_at, reason = ''
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id AND state IN ('dead', 'cancelled')
RETURNING id;

-- name: cancel_job
UPDATE job
   SET state = 'cancelled'
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND id = :id AND state = 'ready'
RETURNING id;
