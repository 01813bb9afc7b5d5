-- What happened, without a word of what was said: names and numbers only.  Numbers of a user have no gaps, so a
-- reader who remembers one knows whether rows were removed meanwhile.  user_id = '' and bot = '' is the org's own
-- range: its keys, and that somebody was erased.

CREATE TABLE event (
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    number       integer NOT NULL,
    at           integer NOT NULL,
    kind         text    NOT NULL,         -- message.added, fact.replaced, job.done, ...
    actor        text    NOT NULL,         -- id of the key that did it, local, background
    subject      text    NOT NULL,         -- '': the user as a whole
    conversation text    NOT NULL,         -- '': none in particular
    ref          text    NOT NULL,         -- id or number of the thing; '' once the place was erased
    PRIMARY KEY (org, user_id, bot, number)
) STRICT, WITHOUT ROWID;
