-- What a search of a big scope reads instead of all vectors, and whose vectors a user has.

ALTER TABLE doc ADD COLUMN signs blob;                         -- the signs of the current vector's numbers, a bit each

ALTER TABLE user_state ADD COLUMN embedder text NOT NULL DEFAULT ''; -- whose vectors all documents had when last embedded

CREATE INDEX fact_id ON fact (org, user_id, bot, id);          -- an id is all that some callers have

CREATE INDEX user_embedder ON user_state (embedder);
