-- How often the keys of providers are used: digests and times, of all users together.

-- name: pace
SELECT id, version, requests_at, tokens_at, booked_until, closed_until FROM pace WHERE id = :id;

-- name: add_pace
INSERT INTO pace (id, version, requests_at, tokens_at, booked_until, closed_until)
VALUES (:id, :version, :requests_at, :tokens_at, :booked_until, :closed_until)
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: move_pace
UPDATE pace
   SET version      = :version,
       requests_at  = :requests_at,
       tokens_at    = :tokens_at,
       booked_until = :booked_until,
       closed_until = :closed_until
 WHERE id = :id AND version = :was
RETURNING id;

-- name: remove_idle_paces
-- Keys that nobody has used for long tell nothing.
DELETE FROM pace
 WHERE requests_at < :before AND closed_until < :before;
