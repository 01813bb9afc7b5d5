-- What users chose about their memory.  Erased messages keep their row, as a tombstone of role
-- 'erased' without content, so that numbers and coverage stay; an edge of child_kind 'end' names the
-- message that ended a fact.

CREATE TABLE consent (                     -- no row: active
    org     text    NOT NULL,
    user_id text    NOT NULL,
    bot     text    NOT NULL,
    subject text    NOT NULL,              -- '' for all of the user's subjects
    state   text    NOT NULL CHECK (state IN ('paused', 'opted-out')),
    since   integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE never (                       -- topics that shall never be remembered
    org     text    NOT NULL,
    user_id text    NOT NULL,
    bot     text    NOT NULL,
    subject text    NOT NULL,              -- '' for all of the user's subjects
    topic   text    NOT NULL,              -- a category, or words
    since   integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, topic)
) STRICT, WITHOUT ROWID;
