-- Messages of one conversation by their numbers, and what rests on them.  :seqs is a JSON list.

-- name: turns_at
SELECT subject, conversation, session, seq, role, name, content, at, tokens, meta
  FROM message
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation
   AND seq IN (SELECT CAST(jsonb_array_elements_text(CAST(:seqs AS jsonb)) AS bigint))
   AND role NOT IN ('erased', 'abandoned');

-- name: message_texts
SELECT subject, conversation, seq, content
  FROM message
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND subject = :subject AND conversation = :conversation
   AND seq IN (SELECT CAST(jsonb_array_elements_text(CAST(:seqs AS jsonb)) AS bigint));

-- name: children_of_messages
-- What rests on them.  It is not joined with the facts: databases would look at all of them for each message.
SELECT subject, conversation, start_seq, child_kind, child
  FROM derivation
 WHERE org = :org AND user_id = :user_id AND bot = :bot AND source_kind = 'message'
   AND subject = :subject AND conversation = :conversation AND start_seq IN (SELECT CAST(jsonb_array_elements_text(CAST(:seqs AS jsonb)) AS bigint));
