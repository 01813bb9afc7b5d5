-- What the processes of a service share: how much each key and each org has stored, and long work that was ordered.

CREATE TABLE allowance (
    org      text    NOT NULL,
    key_id   text    NOT NULL,             -- '': all keys of the org together
    period   text    NOT NULL,             -- 2026-03-14 or 2026-03, in UTC
    messages integer NOT NULL,
    PRIMARY KEY (org, key_id, period)
) STRICT, WITHOUT ROWID;

CREATE TABLE task (                        -- the last thousand of an org; what was made is told by ids, never by words
    org          text    NOT NULL,         -- '': for everybody, in every org
    user_id      text    NOT NULL,         -- '': everybody's
    bot          text    NOT NULL,
    subject      text    NOT NULL,         -- '': every subject
    conversation text    NOT NULL,         -- '': no single one
    id           text    NOT NULL,
    kind         text    NOT NULL,         -- rebuild, backfill, consolidate, import
    state        text    NOT NULL,         -- ready, running, done, failed, cancelled, interrupted
    done         integer NOT NULL,
    total        integer NOT NULL,         -- 0 while nobody knows
    code         text    NOT NULL,         -- of the error that ended it, or ''
    reason       text    NOT NULL,
    report       text    NOT NULL,         -- figures and ids as JSON, or ''
    once         text    NOT NULL,         -- SHA-256 of who asked with which Idempotency-Key, or ''
    asked        text    NOT NULL,         -- SHA-256 of what was asked for
    stop         integer NOT NULL,         -- 1: it is to end before its next range
    created      integer NOT NULL,
    seen         integer NOT NULL,         -- when the process that works on it last said so
    ended        integer,
    PRIMARY KEY (org, user_id, bot, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_id ON task (id);

ALTER TABLE api_key ADD COLUMN parent text NOT NULL DEFAULT ''; -- the key that it was made from, and ends with, or ''
