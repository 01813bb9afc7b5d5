-- How long the calls of servers took, of all users together: counts, which name nobody and nothing.

CREATE TABLE call_time (
    call   text    NOT NULL,               -- context, search, append
    hour   integer NOT NULL,               -- since 1970, UTC
    step   integer NOT NULL,               -- of time: each is a tenth longer than the one before; 0 ends at one second
    calls  integer NOT NULL,
    PRIMARY KEY (call, hour, step)
) STRICT, WITHOUT ROWID;
