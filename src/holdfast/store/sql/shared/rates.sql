-- How often the keys of providers are used, and how long calls took: digests, times and counts, of all users together.

-- name: rate
SELECT id, version, requests_at, tokens_at, booked_until, closed_until FROM rate_limit WHERE id = :id;

-- name: add_rate
INSERT INTO rate_limit (id, version, requests_at, tokens_at, booked_until, closed_until)
VALUES (:id, :version, :requests_at, :tokens_at, :booked_until, :closed_until)
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: move_rate
UPDATE rate_limit
   SET version      = :version,
       requests_at  = :requests_at,
       tokens_at    = :tokens_at,
       booked_until = :booked_until,
       closed_until = :closed_until
 WHERE id = :id AND version = :was
RETURNING id;

-- name: remove_idle_rates
-- Delete keys that have not been used for long.
DELETE FROM rate_limit
 WHERE requests_at < :before AND closed_until < :before;

-- name: call_times
SELECT hour, step, calls FROM call_time WHERE call = :call AND hour >= :hour;

-- name: add_call_time
INSERT INTO call_time (call, hour, step, calls)
VALUES (:call, :hour, :step, :calls)
ON CONFLICT (call, hour, step) DO UPDATE
   SET calls = call_time.calls + excluded.calls;

-- name: remove_call_times
DELETE FROM call_time WHERE call = :call AND hour < :before;
