-- What is measured: what the context before each reply came to.  Sizes and digests, no text.

CREATE TABLE shown (                       -- one row a stored reply for which a context was made
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    subject      text    NOT NULL,
    conversation text    NOT NULL,
    seq          integer NOT NULL,         -- number of the reply
    at           integer NOT NULL,         -- when the context was made
    strategy     text    NOT NULL,
    sent         integer NOT NULL,         -- tokens of the context, the caller's own system text left out
    prefix       text    NOT NULL,         -- first 16 digits of the SHA-256 of the stable part
    recalled     integer NOT NULL,         -- items that were recalled for the question and shown
    taken_up     integer NOT NULL,         -- how many of them the reply shares telling words with
    PRIMARY KEY (org, user_id, bot, subject, conversation, seq)
) STRICT, WITHOUT ROWID;

ALTER TABLE prompt ADD COLUMN draft integer NOT NULL DEFAULT 0; -- 1: saved to be tried, not used
