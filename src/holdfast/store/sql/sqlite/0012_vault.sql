-- Keys of providers that users and orgs brought, sealed; the master key that opens them is not here.

CREATE TABLE provider_key (
    org      text    NOT NULL,
    user_id  text    NOT NULL,             -- '': the org's own
    id       text    NOT NULL,
    provider text    NOT NULL,             -- openai, anthropic, google, ollama
    model    text    NOT NULL,
    base_url text    NOT NULL,             -- the one address that the key may be sent to
    master   text    NOT NULL,             -- which master key sealed it
    sealed   text    NOT NULL,             -- base64 of nonce and AES-256-GCM; org, user_id, id, provider, base_url are bound in
    print    text    NOT NULL,             -- four characters by which its owner knows it; not of the key itself
    set_at   integer NOT NULL,             -- the one that was set last is used
    PRIMARY KEY (org, user_id, id)
) STRICT, WITHOUT ROWID;
