-- What was made again, range by range: which rows stood before and which stand now, by id.  No text,
-- so nothing in it has to be erased with what it names.

CREATE TABLE rebuilt (
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    subject      text    NOT NULL,
    conversation text    NOT NULL,
    id           text    NOT NULL,         -- of the call; one row a range that it made again
    part         integer NOT NULL,
    layer        text    NOT NULL,         -- facts, episodes, summaries, meta
    start_seq    integer NOT NULL,
    end_seq      integer NOT NULL,
    was          text    NOT NULL,         -- JSON: ids and what else is needed to put it back
    became       text    NOT NULL,
    source       text    NOT NULL,         -- who made it, as rows say it
    created_at   integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, id, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE reading (                     -- which messages a model has read for facts, as it may find none
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    subject      text    NOT NULL,
    conversation text    NOT NULL,
    model        text    NOT NULL,
    start_seq    integer NOT NULL,
    end_seq      integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, model, start_seq)
) STRICT, WITHOUT ROWID;
