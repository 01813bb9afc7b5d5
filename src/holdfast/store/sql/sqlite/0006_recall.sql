-- What a search of a big scope reads instead of all vectors, and whose vectors a person has.

ALTER TABLE doc ADD COLUMN signs blob;                         -- the signs of the current vector's numbers, a bit each

ALTER TABLE person ADD COLUMN embedder text NOT NULL DEFAULT ''; -- whose vectors all documents had when last embedded

CREATE INDEX fact_id ON fact (org, user_id, bot, id);          -- an id is all that some callers have

CREATE INDEX person_embedder ON person (embedder);
