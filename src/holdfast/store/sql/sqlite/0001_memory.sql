-- One user's memory is one contiguous key range (org, user_id, bot, ...) in every table.
-- Legal on SQLite, PostgreSQL and Citus alike: no sequences, no triggers, every key starts with
-- the range, ids and times come from the application (times: milliseconds UTC).

CREATE TABLE user_state (                      -- one row a user; the counters of the range
    org        text    NOT NULL,
    user_id    text    NOT NULL,
    bot        text    NOT NULL,
    next_doc   integer NOT NULL,           -- number of the next indexed document
    version    integer NOT NULL,           -- rises whenever the user's index changes; caches compare it
    epoch      integer NOT NULL,           -- rises with each erasure; work that began before it is discarded
    created_at integer NOT NULL,
    PRIMARY KEY (org, user_id, bot)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversation (
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    conversation  text    NOT NULL,
    next_seq      integer NOT NULL,        -- number of the next message, from 1
    chunk_start   integer NOT NULL,        -- first message that no chunk covers yet
    ended_seq     integer NOT NULL,        -- end() was called after this message; 0 if never
    extracted_seq integer NOT NULL,        -- facts were read up to this message
    session       integer NOT NULL,        -- counts sittings: a long silence opens the next
    last_at       integer NOT NULL,        -- time of the newest message
    created_at    integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation)
) STRICT, WITHOUT ROWID;

CREATE TABLE message (
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    subject      text    NOT NULL,
    conversation text    NOT NULL,
    seq          integer NOT NULL,
    role         text    NOT NULL,
    name         text,
    content      text    NOT NULL,
    at           integer NOT NULL,         -- when it was said
    tokens       integer NOT NULL,
    session      integer NOT NULL,
    doc          integer NOT NULL,         -- its number in the index
    meta         text    NOT NULL,         -- JSON: tool calls and whatever else the caller gave
    recorded_at  integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (                 -- one row per key that a caller used
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    subject      text    NOT NULL,
    conversation text    NOT NULL,
    key          text    NOT NULL,
    digest       text    NOT NULL,         -- SHA-256 of the body, to refuse another one
    first_seq    integer NOT NULL,
    last_seq     integer NOT NULL,
    created_at   integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE coverage (                    -- a message can be covered once: the key says so
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    subject      text    NOT NULL,
    conversation text    NOT NULL,
    seq          integer NOT NULL,
    summary      text    NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE summary (
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    subject      text    NOT NULL,
    conversation text    NOT NULL,
    id           text    NOT NULL,
    level        integer NOT NULL,
    start_seq    integer NOT NULL,
    end_seq      integer NOT NULL,
    exchanges    integer NOT NULL,
    text         text    NOT NULL,
    themes       text    NOT NULL,         -- JSON lists
    concerns     text    NOT NULL,
    actions      text    NOT NULL,
    block        integer NOT NULL,         -- place within its level, from 0
    version      integer NOT NULL,
    parent       text,                     -- the summary of the next level that stands in for it
    live         integer NOT NULL,         -- 0: an older version of this range
    stale        integer NOT NULL,
    doc          integer NOT NULL,
    source       text    NOT NULL,
    created_at   integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, id),
    CHECK (start_seq <= end_seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX summary_live ON summary
    (org, user_id, bot, subject, conversation, level, start_seq) WHERE live = 1;

CREATE TABLE fact (
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,        -- whom or what it is about
    id            text    NOT NULL,
    kind          text    NOT NULL,        -- attribute, statement, episode
    category      text    NOT NULL,
    key           text    NOT NULL,
    value         text    NOT NULL,
    text          text    NOT NULL,
    slot_key      text    NOT NULL,        -- the address: '' where the category holds one fact
    slot_value    text    NOT NULL,        -- the address: '' unless the key holds a set of values
    cardinality   text    NOT NULL,
    confidence    real    NOT NULL,
    lifetime      text    NOT NULL,
    valid_from    integer NOT NULL,        -- when it began to hold
    valid_to      integer,                 -- when it stopped; NULL while it is believed
    recorded_at   integer NOT NULL,        -- when we learned it
    ended_at      integer,                 -- when we learned that it had stopped
    ended_because text    NOT NULL,        -- '', replaced, retracted, expired
    superseded_by text,
    expires_at    integer,                 -- a transient fact's end, named by the words themselves
    unscoped      integer NOT NULL,        -- 1: said in a conversation about no subject in particular
    stated_at     integer NOT NULL,        -- time of the latest message that said it
    stated_seq    integer NOT NULL,        -- and its number, which decides among equal times
    strength      real    NOT NULL,
    last_used_at  integer,
    uses          integer NOT NULL,
    doc           integer NOT NULL,
    source        text    NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX fact_live ON fact      -- a live address is unique in the database
    (org, user_id, bot, subject, category, slot_key, slot_value) WHERE valid_to IS NULL;

CREATE TABLE evidence (                    -- no fact without a quote
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    subject      text    NOT NULL,         -- of the fact
    fact         text    NOT NULL,
    home         text    NOT NULL,         -- subject of the conversation that holds the message
    conversation text    NOT NULL,
    seq          integer NOT NULL,
    start        integer NOT NULL,         -- characters, end excluded
    stop         integer NOT NULL,
    role         text    NOT NULL,
    quote        text    NOT NULL,
    at           integer NOT NULL,
    recorded_at  integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, fact, home, conversation, seq, start)
) STRICT, WITHOUT ROWID;

CREATE TABLE rejected (                    -- what an extractor claimed and grounding refused
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    subject      text    NOT NULL,         -- of the conversation
    conversation text    NOT NULL,
    seq          integer NOT NULL,
    id           text    NOT NULL,
    reason       text    NOT NULL,
    claim        text    NOT NULL,         -- JSON of the candidate
    recorded_at  integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, seq, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE derivation (                  -- what a derived row rests on; erasing follows these edges
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    child_kind   text    NOT NULL,         -- summary, fact
    child        text    NOT NULL,
    source_kind  text    NOT NULL,         -- message, summary, fact
    subject      text    NOT NULL,         -- where the source stands
    conversation text    NOT NULL,
    start_seq    integer NOT NULL,         -- a range of messages; 0 for other sources
    end_seq      integer NOT NULL,
    source       text    NOT NULL,         -- id of a summary or fact; '' for messages
    PRIMARY KEY (org, user_id, bot, child_kind, child, source_kind, subject, conversation, start_seq, source)
) STRICT, WITHOUT ROWID;

CREATE INDEX derivation_source ON derivation
    (org, user_id, bot, source_kind, subject, conversation, start_seq, source);

CREATE TABLE doc (                         -- one row per searchable message, fact or summary
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    subject      text    NOT NULL,
    kind         text    NOT NULL,         -- message, fact, summary
    doc          integer NOT NULL,
    conversation text    NOT NULL,         -- '' for facts
    seq          integer NOT NULL,         -- message number, end of a summary's range, 0 for facts
    ref          text    NOT NULL,         -- id of the fact or summary; '' for messages
    session      integer NOT NULL,
    speaker      text    NOT NULL,
    role         text    NOT NULL,
    at           integer NOT NULL,
    terms        integer NOT NULL,         -- length in index terms
    chars        integer NOT NULL,
    signals      integer NOT NULL,         -- bits of text/terms.py
    unscoped     integer NOT NULL,         -- as on fact; 1 for messages and summaries
    embedded     text    NOT NULL,         -- id of the embedder whose vector is current; '' if none
    PRIMARY KEY (org, user_id, bot, subject, kind, doc)
) STRICT, WITHOUT ROWID;

CREATE TABLE posting (                     -- the lexical index: one range a user, never a global one
    org     text    NOT NULL,
    user_id text    NOT NULL,
    bot     text    NOT NULL,
    subject text    NOT NULL,
    kind    text    NOT NULL,
    term    text    NOT NULL,
    doc     integer NOT NULL,
    tf      integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, kind, term, doc)
) STRICT, WITHOUT ROWID;

CREATE TABLE vector (                      -- int8 with a scale; rows of two embedders are never compared
    org      text    NOT NULL,
    user_id  text    NOT NULL,
    bot      text    NOT NULL,
    subject  text    NOT NULL,
    kind     text    NOT NULL,
    embedder text    NOT NULL,
    doc      integer NOT NULL,
    scale    real    NOT NULL,
    data     blob    NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, kind, embedder, doc)
) STRICT, WITHOUT ROWID;

CREATE TABLE job (
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    id           text    NOT NULL,
    kind         text    NOT NULL,
    key          text    NOT NULL,         -- lane: one row a piece of standing work
    subject      text    NOT NULL,
    conversation text    NOT NULL,
    state        text    NOT NULL CHECK (state IN ('ready', 'running', 'dead', 'cancelled')),
    wanted       integer NOT NULL,
    attempt      integer NOT NULL,
    fence        integer NOT NULL,
    run_at       integer NOT NULL,
    lease_until  integer NOT NULL,
    worker       text    NOT NULL,
    reason       text    NOT NULL,
    created_at   integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX job_key ON job (org, user_id, bot, kind, subject, conversation, key);
CREATE INDEX job_due ON job (state, run_at);

CREATE TABLE prefix (                      -- the stable part of the last context, to say why it changed
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    subject      text    NOT NULL,
    conversation text    NOT NULL,
    variant      text    NOT NULL,         -- strategy and budget: contexts of another shape are not compared
    sha256       text    NOT NULL,
    manifest     text    NOT NULL,         -- JSON: ids and digests of the items, no text
    PRIMARY KEY (org, user_id, bot, subject, conversation, variant)
) STRICT, WITHOUT ROWID;

-- Four views to read with any SQLite tool: sqlite3 chat.db 'SELECT * FROM beliefs'.
-- Their columns are a promise; later versions only add some at the end.

CREATE VIEW beliefs AS
SELECT f.org, f.user_id, f.bot, f.subject, f.category, f.key, f.value, f.text, f.confidence,
       datetime(f.valid_from / 1000, 'unixepoch') AS since,
       (SELECT e.quote FROM evidence e
         WHERE e.org = f.org AND e.user_id = f.user_id AND e.bot = f.bot AND e.subject = f.subject AND e.fact = f.id
         ORDER BY e.at DESC, e.seq DESC LIMIT 1) AS quote,
       (SELECT count(*) FROM evidence e
         WHERE e.org = f.org AND e.user_id = f.user_id AND e.bot = f.bot AND e.subject = f.subject AND e.fact = f.id) AS said_times,
       f.source, f.id
  FROM fact f
 WHERE f.valid_to IS NULL
 ORDER BY f.org, f.user_id, f.bot, f.subject, f.category, f.key, f.value;

CREATE VIEW belief_history AS
SELECT f.org, f.user_id, f.bot, f.subject, f.category, f.key, f.value, f.text, f.confidence,
       datetime(f.valid_from / 1000, 'unixepoch') AS held_from,
       datetime(f.valid_to / 1000, 'unixepoch') AS held_to,
       datetime(f.recorded_at / 1000, 'unixepoch') AS learned_at,
       datetime(f.ended_at / 1000, 'unixepoch') AS ended_at,
       f.ended_because, f.superseded_by, f.source, f.id
  FROM fact f
 ORDER BY f.org, f.user_id, f.bot, f.subject, f.category, f.valid_from, f.recorded_at;

CREATE VIEW turns AS
SELECT m.org, m.user_id, m.bot, m.subject, m.conversation, m.seq, m.role, m.name, m.content,
       datetime(m.at / 1000, 'unixepoch') AS said_at, m.tokens, c.summary AS covered_by
  FROM message m
  LEFT JOIN coverage c ON c.org = m.org AND c.user_id = m.user_id AND c.bot = m.bot
        AND c.subject = m.subject AND c.conversation = m.conversation AND c.seq = m.seq
 ORDER BY m.org, m.user_id, m.bot, m.subject, m.conversation, m.seq;

CREATE VIEW summaries AS
SELECT s.org, s.user_id, s.bot, s.subject, s.conversation, s.level, s.block, s.version,
       s.start_seq, s.end_seq, s.exchanges, s.text, s.themes, s.concerns, s.actions,
       datetime(s.created_at / 1000, 'unixepoch') AS created, s.source, s.stale, s.parent, s.id
  FROM summary s
 WHERE s.live = 1
 ORDER BY s.org, s.user_id, s.bot, s.subject, s.conversation, s.start_seq, s.level;
