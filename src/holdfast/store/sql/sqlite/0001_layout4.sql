-- One user's memory is one contiguous key range (org, user_id, bot, ...) in every table.
-- Legal on SQLite, PostgreSQL and Citus alike: no sequences, no triggers, every key starts with
-- the range, ids and times come from the application (times: milliseconds UTC).

CREATE TABLE user_state (                  -- one row a user; the counters of the range
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    next_doc      integer NOT NULL,        -- number of the next indexed document
    version       integer NOT NULL,        -- rises whenever the user's index changes; caches compare it
    epoch         integer NOT NULL,        -- rises with each erasure; work that began before it is discarded
    created_at    integer NOT NULL,
    embedder      text    NOT NULL DEFAULT '', -- id of the embedder of all vectors when last embedded
    -- Each rises when an indexed document of its kind changes or goes; new ones and first vectors leave it.
    -- That of facts rises with every change to a fact.  Caches extend an index while they stay.
    messages_rev  integer NOT NULL DEFAULT 0,
    facts_rev     integer NOT NULL DEFAULT 0,
    summaries_rev integer NOT NULL DEFAULT 0,
    PRIMARY KEY (org, user_id, bot)
) STRICT, WITHOUT ROWID;

CREATE INDEX user_embedder ON user_state (embedder);

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
    read_seq      integer NOT NULL,        -- a model has read facts up to this message
    stated_seq    integer NOT NULL,        -- the newest message that may state something
    unread_turns  integer NOT NULL,        -- messages of users after read_seq
    ahead_turns   integer NOT NULL,        -- how many of them were read sooner than due
    own_facts     integer NOT NULL,        -- 1: what is stated here is a fact of this conversation, not of the user
    PRIMARY KEY (org, user_id, bot, subject, conversation)
) STRICT, WITHOUT ROWID;

CREATE INDEX conversation_newest ON conversation (org, user_id, bot, last_at, conversation, subject);

CREATE INDEX conversation_apart ON conversation (org, user_id, bot, subject, conversation) WHERE own_facts = 1;

CREATE TABLE subject (                     -- whom or what conversations are about, beside the user
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,        -- its id, in lower case
    name          text    NOT NULL,        -- as shown; '' where none was given
    aliases       text    NOT NULL,        -- JSON list
    created_at    integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE message (
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    conversation  text    NOT NULL,
    seq           integer NOT NULL,
    role          text    NOT NULL,
    name          text,
    content       text    NOT NULL,
    at            integer NOT NULL,        -- when it was said
    tokens        integer NOT NULL,
    session       integer NOT NULL,
    doc           integer NOT NULL,        -- its number in the index
    meta          text    NOT NULL,        -- JSON: tool calls and whatever else the caller gave
    recorded_at   integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (                 -- one row per key that a caller used
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    conversation  text    NOT NULL,
    key           text    NOT NULL,
    digest        text    NOT NULL,        -- SHA-256 of the body, to refuse another one
    first_seq     integer NOT NULL,
    last_seq      integer NOT NULL,
    created_at    integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE coverage (                    -- a message can be covered once: the key says so
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    conversation  text    NOT NULL,
    seq           integer NOT NULL,
    summary       text    NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE summary (
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    conversation  text    NOT NULL,
    id            text    NOT NULL,
    level         integer NOT NULL,
    start_seq     integer NOT NULL,
    end_seq       integer NOT NULL,
    exchanges     integer NOT NULL,
    text          text    NOT NULL,
    themes        text    NOT NULL,        -- JSON lists
    concerns      text    NOT NULL,
    actions       text    NOT NULL,
    block         integer NOT NULL,        -- place within its level, from 0
    version       integer NOT NULL,
    parent        text,                    -- the summary of the next level that replaces it in a context
    live          integer NOT NULL,        -- 0: an older version of this range
    stale         integer NOT NULL,
    doc           integer NOT NULL,
    source        text    NOT NULL,
    created_at    integer NOT NULL,
    first_at      integer,                 -- the times of its first and its last message
    last_at       integer,
    PRIMARY KEY (org, user_id, bot, subject, conversation, id),
    CHECK (start_seq <= end_seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX summary_live ON summary
    (org, user_id, bot, subject, conversation, level, start_seq) WHERE live = 1;

CREATE INDEX summary_newest ON summary     -- what a new conversation begins with
    (org, user_id, bot, subject, last_at) WHERE live = 1 AND parent IS NULL;

CREATE TABLE story (                       -- what all conversations about a subject came to
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    id            text    NOT NULL,
    version       integer NOT NULL,
    lines         text    NOT NULL,        -- JSON: each with its times and the summaries that it rests on
    source        text    NOT NULL,
    created_at    integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE fact (
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,        -- the user ('self'), a pet, a project, ...
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
    importance    real    NOT NULL,        -- from 0 to 1: which events and sentences come first where room is short
    home          text    NOT NULL,        -- the conversation that it belongs to, and its subject; '' for the user's
    only_in       text    NOT NULL,
    label         text    NOT NULL,        -- one of six broad words: technical, history, ...
    PRIMARY KEY (org, user_id, bot, subject, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX fact_live ON fact      -- a live address is unique in the database
    (org, user_id, bot, subject, home, only_in, category, slot_key, slot_value) WHERE valid_to IS NULL;
CREATE INDEX fact_fading ON fact (stated_at) WHERE valid_to IS NULL AND kind <> 'attribute';  -- what may have faded
CREATE INDEX fact_id ON fact (org, user_id, bot, id);          -- some callers have nothing but the id

CREATE TABLE evidence (                    -- no fact without a quote
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,        -- of the fact
    fact          text    NOT NULL,
    home          text    NOT NULL,        -- subject of the conversation that holds the message
    conversation  text    NOT NULL,
    seq           integer NOT NULL,
    start         integer NOT NULL,        -- characters, end excluded
    stop          integer NOT NULL,
    role          text    NOT NULL,
    quote         text    NOT NULL,
    at            integer NOT NULL,
    recorded_at   integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, fact, home, conversation, seq, start)
) STRICT, WITHOUT ROWID;

CREATE TABLE rejected (                    -- candidates of an extractor that grounding refused
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,        -- of the conversation
    conversation  text    NOT NULL,
    seq           integer NOT NULL,
    id            text    NOT NULL,
    reason        text    NOT NULL,
    claim         text    NOT NULL,        -- JSON of the candidate
    recorded_at   integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, seq, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE derivation (                  -- the sources of a derived row; erasing follows these edges
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    child_kind    text    NOT NULL,        -- summary, fact
    child         text    NOT NULL,
    source_kind   text    NOT NULL,        -- message, summary, fact
    subject       text    NOT NULL,        -- of the source
    conversation  text    NOT NULL,
    start_seq     integer NOT NULL,        -- a range of messages; 0 for other sources
    end_seq       integer NOT NULL,
    source        text    NOT NULL,        -- id of a summary or fact; '' for messages
    PRIMARY KEY (org, user_id, bot, child_kind, child, source_kind, subject, conversation, start_seq, source)
) STRICT, WITHOUT ROWID;

CREATE INDEX derivation_source ON derivation
    (org, user_id, bot, source_kind, subject, conversation, start_seq, source);

CREATE TABLE doc (                         -- one row per searchable message, fact or summary
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    kind          text    NOT NULL,        -- message, fact, summary
    doc           integer NOT NULL,
    conversation  text    NOT NULL,        -- of a fact: the one that it belongs to, '' for the user's
    seq           integer NOT NULL,        -- message number, end of a summary's range, 0 for facts
    ref           text    NOT NULL,        -- id of the fact or summary; '' for messages
    session       integer NOT NULL,
    speaker       text    NOT NULL,
    role          text    NOT NULL,
    at            integer NOT NULL,
    terms         integer NOT NULL,        -- length in index terms
    chars         integer NOT NULL,
    signals       integer NOT NULL,        -- bits of text/terms.py
    unscoped      integer NOT NULL,        -- as on fact; 1 for messages and summaries
    embedded      text    NOT NULL,        -- id of the embedder whose vector is current; '' if none
    signs         blob,                    -- the signs of the current vector's numbers, a bit each
    words         text    NOT NULL,        -- its index terms, each as often as it occurs, a space between them
    PRIMARY KEY (org, user_id, bot, subject, kind, doc)
) STRICT, WITHOUT ROWID;

CREATE TABLE segment (                     -- some hundred documents once more, packed as a search reads them
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    kind          text    NOT NULL,
    first_doc     integer NOT NULL,        -- it holds every document of the kind from here
    last_doc      integer NOT NULL,        -- to here; removed with each change to one of them
    docs          integer NOT NULL,        -- how many they are
    terms         integer NOT NULL,        -- sum of theirs
    embedder      text    NOT NULL,        -- as on doc, the same for all
    data          blob    NOT NULL,        -- see store/segments.py
    PRIMARY KEY (org, user_id, bot, subject, kind, first_doc)
) STRICT, WITHOUT ROWID;

CREATE TABLE vector (                      -- int8 with a scale; rows of two embedders are never compared
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    kind          text    NOT NULL,
    embedder      text    NOT NULL,
    doc           integer NOT NULL,
    scale         real    NOT NULL,
    data          blob    NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, kind, embedder, doc)
) STRICT, WITHOUT ROWID;

CREATE TABLE job (
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    id            text    NOT NULL,
    kind          text    NOT NULL,
    key           text    NOT NULL,        -- lane: one row a piece of standing work
    subject       text    NOT NULL,
    conversation  text    NOT NULL,
    state         text    NOT NULL CHECK (state IN ('ready', 'running', 'dead', 'cancelled')),
    wanted        integer NOT NULL,
    attempt       integer NOT NULL,
    fence         integer NOT NULL,
    run_at        integer NOT NULL,
    lease_until   integer NOT NULL,
    worker        text    NOT NULL,
    reason        text    NOT NULL,
    created_at    integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX job_key ON job (org, user_id, bot, kind, subject, conversation, key);
CREATE INDEX job_due ON job (run_at) WHERE state = 'ready';              -- what is due next, of all
CREATE INDEX job_lane ON job (org, kind, run_at, id) WHERE state = 'ready';  -- the oldest of a kind of work of an org
CREATE INDEX job_lease ON job (lease_until) WHERE state = 'running';
CREATE INDEX job_id ON job (id);           -- ids sort by time: operators page by them

CREATE TABLE prefix (                      -- the stable part of the last context, to say why it changed
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    conversation  text    NOT NULL,
    variant       text    NOT NULL,        -- strategy and budget: contexts of another shape are not compared
    sha256        text    NOT NULL,
    manifest      text    NOT NULL,        -- JSON: ids and digests of the items, no text
    PRIMARY KEY (org, user_id, bot, subject, conversation, variant)
) STRICT, WITHOUT ROWID;

-- Choices of users about their memory.  An erased message keeps its row, with the role 'erased' and
-- without content, so that numbers and coverage stay; an edge of child_kind 'end' names the
-- message that ended a fact.

CREATE TABLE consent (                     -- no row: active
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,        -- '' for all of the user's subjects
    state         text    NOT NULL CHECK (state IN ('paused', 'opted-out')),
    since         integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE blocked_topic (               -- topics that must not be remembered
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,        -- '' for all of the user's subjects
    topic         text    NOT NULL,        -- a category, or words
    since         integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, topic)
) STRICT, WITHOUT ROWID;

-- The cost of models, and the users' own instructions to them.

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

CREATE TABLE prompt (                      -- a user's own instructions to a model, all versions
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    name          text    NOT NULL,        -- chunk_summary, meta_summary, fact_extraction, episodes, character, story
    version       integer NOT NULL,        -- the highest is used
    text          text    NOT NULL,        -- '': back to the prompt of the library
    since         integer NOT NULL,
    draft         integer NOT NULL,        -- 1: saved to be tried, not used; 100 + n: used for n of 100 users
    PRIMARY KEY (org, user_id, bot, name, version)
) STRICT, WITHOUT ROWID;

-- Rebuilds, range by range: the rows before and after, by id.  No text, so an erasure leaves these rows.

CREATE TABLE rebuild (
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    conversation  text    NOT NULL,
    id            text    NOT NULL,        -- of the call; one row for each range that it rebuilt
    part          integer NOT NULL,
    layer         text    NOT NULL,        -- facts, episodes, summaries, meta
    start_seq     integer NOT NULL,
    end_seq       integer NOT NULL,
    before        text    NOT NULL,        -- JSON: the ids and what else a revert needs
    after         text    NOT NULL,
    source        text    NOT NULL,        -- the model or the rules that wrote it
    created_at    integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, id, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE read_range (                  -- messages that a model has read for facts; it may have found none
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    conversation  text    NOT NULL,
    model         text    NOT NULL,
    start_seq     integer NOT NULL,
    end_seq       integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, model, start_seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE episode_range (               -- one row for each range that was searched for episodes
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    conversation  text    NOT NULL,
    start_seq     integer NOT NULL,
    end_seq       integer NOT NULL,
    found         integer NOT NULL,        -- number of episodes; 0 when there was none to record
    source        text    NOT NULL,
    created_at    integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, start_seq, end_seq),
    CHECK (start_seq <= end_seq)
) STRICT, WITHOUT ROWID;

-- Keys of callers over the network.  A key itself is never stored, only its digest.

CREATE TABLE api_key (
    org           text    NOT NULL,
    id            text    NOT NULL,        -- the part of the key that may be shown
    digest        text    NOT NULL,        -- SHA-256 of the whole key; it has 256 random bits
    role          text    NOT NULL,        -- operator, app, user, subject
    user_id       text    NOT NULL,        -- '' for operator and app
    bot           text    NOT NULL,        -- '': every assistant of the org
    subject       text    NOT NULL,        -- '' unless the role is subject
    label         text    NOT NULL,        -- a name for people
    created       integer NOT NULL,
    expires       integer,
    revoked       integer,
    parent        text    NOT NULL,        -- the key that it was made from, and is revoked with; or ''
    PRIMARY KEY (org, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX api_key_id ON api_key (id);

-- Events, without a word of any message: names and numbers only.  Numbers of a user have no gaps, so a
-- reader who remembers one knows whether rows were removed meanwhile.  user_id = '' and bot = '' is the org's own
-- range: its keys, and that a user was erased.

CREATE TABLE event (
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    number        integer NOT NULL,
    at            integer NOT NULL,
    kind          text    NOT NULL,        -- message.added, fact.replaced, job.done, ...
    actor         text    NOT NULL,        -- id of the caller's key, or local, or background
    subject       text    NOT NULL,        -- '': the user as a whole
    conversation  text    NOT NULL,        -- '': none in particular
    ref           text    NOT NULL,        -- id or number of the changed row; '' after an erasure
    PRIMARY KEY (org, user_id, bot, number)
) STRICT, WITHOUT ROWID;

-- Keys of model providers that users and orgs brought, sealed; the master key is stored elsewhere.

CREATE TABLE provider_key (
    org           text    NOT NULL,
    user_id       text    NOT NULL,        -- '': the org's own
    id            text    NOT NULL,
    provider      text    NOT NULL,        -- openai, anthropic, google, ollama
    model         text    NOT NULL,
    base_url      text    NOT NULL,        -- the one address that the key may be sent to
    master        text    NOT NULL,        -- which master key sealed it
    sealed        text    NOT NULL,        -- base64 of nonce and AES-256-GCM; org, user_id, id, provider, base_url are bound in
    print         text    NOT NULL,        -- four characters by which its owner recognizes it; not part of the key
    set_at        integer NOT NULL,        -- the one that was set last is used
    PRIMARY KEY (org, user_id, id)
) STRICT, WITHOUT ROWID;

-- The ledger of erasures, so that a restored backup does not bring erased data back.  It holds no word and no name: user
-- and conversation are a digest under the ledger's key.

CREATE TABLE ledger_key (
    one           integer PRIMARY KEY,     -- always 1: there is one key
    key text    NOT NULL                   -- 32 random bytes in hexadecimal
) STRICT;

CREATE TABLE erasure (
    id            text    NOT NULL PRIMARY KEY,-- sorts by time
    place         text    NOT NULL,        -- HMAC-SHA256 of the names
    kind          text    NOT NULL,        -- user, subject, conversation, message, words, fact, withheld
    seq           integer NOT NULL,        -- number of the message, or 0
    fact          text    NOT NULL,        -- id of the fact, or ''
    spans         text    NOT NULL,        -- the blanked character ranges: [[start, end], ...]
    at    integer NOT NULL
) STRICT, WITHOUT ROWID;

-- Measurements of the context before each reply.  Sizes and digests, no text.

CREATE TABLE context_stats (               -- one row for each stored reply with a context
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    conversation  text    NOT NULL,
    seq           integer NOT NULL,        -- number of the reply
    at            integer NOT NULL,        -- when the context was made
    strategy      text    NOT NULL,
    tokens        integer NOT NULL,        -- tokens of the context, the caller's own system text left out
    prefix        text    NOT NULL,        -- first 16 digits of the SHA-256 of the stable part
    recalled      integer NOT NULL,        -- items recalled for the question and included
    used          integer NOT NULL,        -- how many of them share distinctive words with the reply
    sent          text    NOT NULL,        -- JSON: its sections with their tokens and the ids of their items, no text
    PRIMARY KEY (org, user_id, bot, subject, conversation, seq)
) STRICT, WITHOUT ROWID;

-- What the state of an agent framework is made of: checkpoints, transcripts, items of a store, files.  Nothing is learned
-- from it; it goes with the conversation, or with the user where it names none.

CREATE TABLE item (
    org           text    NOT NULL,
    user_id       text    NOT NULL,
    bot           text    NOT NULL,
    subject       text    NOT NULL,
    conversation  text    NOT NULL,        -- '': of the user as a whole
    space         text    NOT NULL,        -- which framework, and what of it: langgraph.checkpoint, ...
    name          text    NOT NULL,        -- unique within the space; readers ask for ranges of it
    value         blob    NOT NULL,        -- as the framework serialized it
    created_at    integer NOT NULL,
    updated_at    integer NOT NULL,
    expires_at    integer,                 -- NULL: never
    PRIMARY KEY (org, user_id, bot, subject, conversation, space, name)
) STRICT, WITHOUT ROWID;

-- Shared by the processes of a service: the messages that each key and org has stored, and long-running operations.

CREATE TABLE allowance (
    org           text    NOT NULL,
    key_id        text    NOT NULL,        -- '': all keys of the org together
    period        text    NOT NULL,        -- 2026-03-14 or 2026-03, in UTC
    messages      integer NOT NULL,
    PRIMARY KEY (org, key_id, period)
) STRICT, WITHOUT ROWID;

CREATE TABLE operation (                   -- the last thousand of an org; results are ids, never words
    org           text    NOT NULL,        -- '': every org
    user_id       text    NOT NULL,        -- '': every user
    bot           text    NOT NULL,
    subject       text    NOT NULL,        -- '': every subject
    conversation  text    NOT NULL,        -- '': no single one
    id            text    NOT NULL,
    kind          text    NOT NULL,        -- rebuild, backfill, consolidate, import
    state         text    NOT NULL,        -- ready, running, done, failed, cancelled, interrupted
    done          integer NOT NULL,
    total         integer NOT NULL,        -- 0 while it is unknown
    code          text    NOT NULL,        -- of the error that ended it, or ''
    reason        text    NOT NULL,
    report        text    NOT NULL,        -- figures and ids as JSON, or ''
    once          text    NOT NULL,        -- SHA-256 of the caller and the Idempotency-Key, or ''
    request       text    NOT NULL,        -- SHA-256 of the request
    stop          integer NOT NULL,        -- 1: it must end before its next range
    created_at    integer NOT NULL,
    seen_at       integer NOT NULL,        -- last heartbeat of the process that works on it
    ended_at      integer,
    PRIMARY KEY (org, user_id, bot, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX operation_id ON operation (id);

-- Rate limits of provider keys, shared by all processes.  A key is a digest here.

CREATE TABLE rate_limit (
    id            text    NOT NULL PRIMARY KEY,-- of the provider, its address and the key: half of their SHA-256
    version       integer NOT NULL,        -- rises with each change; a writer that read an older one fails
    requests_at   integer NOT NULL,        -- microseconds: the requests so far are spread until then
    tokens_at     integer NOT NULL,        -- the same, of their tokens
    booked_until  integer NOT NULL,        -- the latest time that a waiting caller was given
    closed_until integer NOT NULL              -- the provider asked for no request before
) STRICT, WITHOUT ROWID;

-- Four views to read with any SQLite tool: sqlite3 chat.db 'SELECT * FROM facts'.
-- Their columns are a promise; later versions only add some at the end.

CREATE VIEW facts AS
SELECT f.org, f.user_id, f.bot, f.subject, f.category, f.key, f.value, f.text, f.confidence,
       datetime(f.valid_from / 1000, 'unixepoch') AS since,
       (SELECT e.quote FROM evidence e
         WHERE e.org = f.org AND e.user_id = f.user_id AND e.bot = f.bot AND e.subject = f.subject AND e.fact = f.id
         ORDER BY e.at DESC, e.seq DESC LIMIT 1) AS quote,
       (SELECT count(*) FROM evidence e
         WHERE e.org = f.org AND e.user_id = f.user_id AND e.bot = f.bot AND e.subject = f.subject AND e.fact = f.id) AS said_times,
       f.source, f.id, f.importance,
       (SELECT e.conversation FROM evidence e
         WHERE e.org = f.org AND e.user_id = f.user_id AND e.bot = f.bot AND e.subject = f.subject AND e.fact = f.id
           AND e.conversation <> '(by hand)'
         ORDER BY e.at, e.seq, e.conversation LIMIT 1) AS conversation,
       (SELECT min(e.seq) FROM evidence e
         WHERE e.org = f.org AND e.user_id = f.user_id AND e.bot = f.bot AND e.subject = f.subject AND e.fact = f.id
           AND e.conversation = (SELECT o.conversation FROM evidence o
                                  WHERE o.org = f.org AND o.user_id = f.user_id AND o.bot = f.bot AND o.subject = f.subject
                                    AND o.fact = f.id AND o.conversation <> '(by hand)'
                                  ORDER BY o.at, o.seq, o.conversation LIMIT 1)) AS start_seq,
       (SELECT max(e.seq) FROM evidence e
         WHERE e.org = f.org AND e.user_id = f.user_id AND e.bot = f.bot AND e.subject = f.subject AND e.fact = f.id
           AND e.conversation = (SELECT o.conversation FROM evidence o
                                  WHERE o.org = f.org AND o.user_id = f.user_id AND o.bot = f.bot AND o.subject = f.subject
                                    AND o.fact = f.id AND o.conversation <> '(by hand)'
                                  ORDER BY o.at, o.seq, o.conversation LIMIT 1)) AS end_seq,
       f.only_in, f.label
  FROM fact f
 WHERE f.valid_to IS NULL
 ORDER BY f.org, f.user_id, f.bot, f.subject, f.category, f.key, f.value;

CREATE VIEW fact_history AS
SELECT f.org, f.user_id, f.bot, f.subject, f.category, f.key, f.value, f.text, f.confidence,
       datetime(f.valid_from / 1000, 'unixepoch') AS held_from,
       datetime(f.valid_to / 1000, 'unixepoch') AS held_to,
       datetime(f.recorded_at / 1000, 'unixepoch') AS learned_at,
       datetime(f.ended_at / 1000, 'unixepoch') AS ended_at,
       f.ended_because, f.superseded_by, f.source, f.id, f.only_in, f.label
  FROM fact f
 ORDER BY f.org, f.user_id, f.bot, f.subject, f.category, f.valid_from, f.recorded_at;

CREATE VIEW messages AS
SELECT m.org, m.user_id, m.bot, m.subject, m.conversation, m.seq, m.role, m.name, m.content,
       datetime(m.at / 1000, 'unixepoch') AS said_at, m.tokens, c.summary AS covered_by
  FROM message m
  LEFT JOIN coverage c ON c.org = m.org AND c.user_id = m.user_id AND c.bot = m.bot
        AND c.subject = m.subject AND c.conversation = m.conversation AND c.seq = m.seq
 ORDER BY m.org, m.user_id, m.bot, m.subject, m.conversation, m.seq;

CREATE VIEW summaries AS
SELECT s.org, s.user_id, s.bot, s.subject, s.conversation, s.level, s.block, s.version,
       s.start_seq, s.end_seq, datetime(s.first_at / 1000, 'unixepoch') AS first_at,
       datetime(s.last_at / 1000, 'unixepoch') AS last_at, s.exchanges, s.text, s.themes, s.concerns, s.actions,
       datetime(s.created_at / 1000, 'unixepoch') AS created, s.source, s.stale, s.parent, s.id
  FROM summary s
 WHERE s.live = 1
 ORDER BY s.org, s.user_id, s.bot, s.subject, s.conversation, s.start_seq, s.level;
