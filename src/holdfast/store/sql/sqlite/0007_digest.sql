-- What work with a model remembers between its calls.

ALTER TABLE conversation ADD COLUMN read_seq integer NOT NULL DEFAULT 0;     -- a model has read facts up to this message
ALTER TABLE conversation ADD COLUMN stated_seq integer NOT NULL DEFAULT 0;   -- the newest message that may state something
ALTER TABLE conversation ADD COLUMN unread_turns integer NOT NULL DEFAULT 0; -- messages of users after read_seq
ALTER TABLE conversation ADD COLUMN ahead_turns integer NOT NULL DEFAULT 0;  -- how many of them were read sooner than due

CREATE TABLE episodes (                    -- one row a range whose episodes were asked for
    org          text    NOT NULL,
    user_id      text    NOT NULL,
    bot          text    NOT NULL,
    subject      text    NOT NULL,
    conversation text    NOT NULL,
    start_seq    integer NOT NULL,
    end_seq      integer NOT NULL,
    found        integer NOT NULL,         -- how many there were; 0 when there was nothing to record
    source       text    NOT NULL,
    created_at   integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, subject, conversation, start_seq, end_seq),
    CHECK (start_seq <= end_seq)
) STRICT, WITHOUT ROWID;
