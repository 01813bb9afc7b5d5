-- What models cost, and in whose words they are instructed.

CREATE TABLE usage (                       -- one row a user, day, purpose and model; the counters rise
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    day           text    NOT NULL,        -- UTC, as 2026-11-21
    layer         text    NOT NULL,        -- what for: facts, chunk_summary, ...
    model         text    NOT NULL,
    calls         integer NOT NULL,        -- those that failed among them
    failed        integer NOT NULL,
    input_tokens  integer NOT NULL,        -- cached ones among them
    output_tokens integer NOT NULL,
    cached_tokens integer NOT NULL,
    cost          integer NOT NULL,        -- billionths of a US dollar, at the price of the moment
    unpriced      integer NOT NULL,        -- answers whose price nobody knew
    PRIMARY KEY (org, user_id, bot, day, layer, model)
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_day ON usage (day, org);

CREATE TABLE prompt (                      -- a user's own words for what a model shall do, all versions
    org     text    NOT NULL,
    user_id text    NOT NULL,
    bot     text    NOT NULL,
    name    text    NOT NULL,              -- chunk_summary, meta_summary, fact_extraction
    version integer NOT NULL,              -- the highest is used
    text    text    NOT NULL,              -- '': back to the words that come with the library
    since   integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, name, version)
) STRICT, WITHOUT ROWID;
