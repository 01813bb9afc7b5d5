-- How often the keys of providers are used: digests and times, of all users together.

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
