-- How often the keys of providers are used by all processes together.  It names nobody: a key stands here as a digest.

CREATE TABLE pace (
    id           text    NOT NULL PRIMARY KEY, -- of the provider, its address and the key: half of their SHA-256
    version      integer NOT NULL,             -- rises with each change: who read an older one changes nothing
    requests_at  integer NOT NULL,             -- microseconds: the requests so far are spread until then
    tokens_at    integer NOT NULL,             -- the same, of their tokens
    booked_until integer NOT NULL,             -- who was sent away last was told to come back then
    closed_until integer NOT NULL              -- the provider asked not to be asked before
) STRICT, WITHOUT ROWID;
