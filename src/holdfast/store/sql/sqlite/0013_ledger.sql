-- What was erased, so that a backup that is put back does not bring it back.  No word and no name stands here: who and
-- which conversation it was is a digest under the ledger's key.

CREATE TABLE ledger_key (
    one integer PRIMARY KEY,               -- always 1: there is one key
    key text    NOT NULL                   -- 32 random bytes in hexadecimal
) STRICT;

CREATE TABLE erased (
    id    text    NOT NULL PRIMARY KEY,    -- sorts by time
    place text    NOT NULL,                -- HMAC-SHA256 of the names
    kind  text    NOT NULL,                -- user, subject, conversation, message, words, fact
    seq   integer NOT NULL,                -- number of the message, or 0
    fact  text    NOT NULL,                -- id of the fact, or ''
    spans text    NOT NULL,                -- which words were blanked: [[start, end], ...]
    at    integer NOT NULL
) STRICT, WITHOUT ROWID;
