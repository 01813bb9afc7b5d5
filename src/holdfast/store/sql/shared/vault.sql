-- Keys of providers that users and orgs brought, sealed.  They belong to a user in all of an org's assistants, so
-- no bot is named; an empty user_id means the org itself.

-- name: provider_keys
SELECT org, user_id, id, provider, model, base_url, master, sealed, print, set_at
  FROM provider_key
 WHERE org = :org AND user_id = :user_id
 ORDER BY set_at DESC, id;

-- name: save_provider_key
INSERT INTO provider_key (org, user_id, id, provider, model, base_url, master, sealed, print, set_at)
VALUES (:org, :user_id, :id, :provider, :model, :base_url, :master, :sealed, :print, :set_at)
ON CONFLICT (org, user_id, id) DO UPDATE
   SET provider = excluded.provider,
       model    = excluded.model,
       base_url = excluded.base_url,
       master   = excluded.master,
       sealed   = excluded.sealed,
       print    = excluded.print,
       set_at   = excluded.set_at;

-- name: remove_provider_key
DELETE FROM provider_key
 WHERE org = :org AND user_id = :user_id AND id = :id
RETURNING id;

-- name: remove_other_provider_keys
DELETE FROM provider_key
 WHERE org = :org AND user_id = :user_id AND provider = :provider AND id <> :id;

-- name: erase_provider_key
DELETE FROM provider_key
 WHERE org = :org AND user_id = :user_id;

-- name: reseal_provider_key
-- Only if it has not been set again meanwhile.
UPDATE provider_key
   SET master = :master, sealed = :sealed, print = :print
 WHERE org = :org AND user_id = :user_id AND id = :id AND sealed = :was
RETURNING id;
