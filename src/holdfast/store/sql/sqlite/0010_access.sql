-- Who may ask over the network.  A key itself is never stored, only what it is compared with.

CREATE TABLE api_key (
    org     text    NOT NULL,
    id      text    NOT NULL,              -- the part of the key that may be shown
    digest  text    NOT NULL,              -- SHA-256 of the whole key; it has 256 random bits
    role    text    NOT NULL,              -- operator, app, user, subject
    user_id text    NOT NULL,              -- '' for operator and app
    bot     text    NOT NULL,              -- '': every assistant of the org
    subject text    NOT NULL,              -- '' unless the role is subject
    label   text    NOT NULL,              -- what users call it
    created integer NOT NULL,
    expires integer,
    revoked integer,
    PRIMARY KEY (org, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX api_key_id ON api_key (id);
