-- The questions of `holdfast doctor` to the server: names, versions, settings and counts, no user's row.

-- name: health_server
SELECT current_setting('server_version'), CAST(current_user AS text), u.rolsuper, u.rolbypassrls, pg_is_in_recovery(),
       has_schema_privilege(current_schema(), 'CREATE'), age(d.datfrozenxid), d.datcollate,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       (SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
  FROM pg_roles u, pg_database d
 WHERE u.rolname = current_user AND d.datname = current_database();

-- name: health_settings
SELECT name, setting
  FROM pg_settings
 WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'data_checksums', 'max_connections',
                'log_statement', 'log_min_duration_statement', 'log_min_duration_sample', 'log_parameter_max_length',
                'log_parameter_max_length_on_error');

-- name: health_tables
-- How each table is guarded: forced, policies of ours, policies of others, owned by this login; columns and indexes that are off; rights.
SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,
       (SELECT COUNT(*) FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname IN ('own_org', 'across')),
       (SELECT COUNT(*) FROM pg_policy p
         WHERE p.polrelid = c.oid AND p.polpermissive AND p.polname NOT IN ('own_org', 'across', 'own_rows')),
       pg_has_role(c.relowner, 'USAGE'),
       EXISTS (SELECT 1 FROM aclexplode(c.relacl) a WHERE a.grantee = 0),
       (SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) FROM pg_attribute a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attcollation <> 0
           AND a.attcollation <> (SELECT oid FROM pg_collation WHERE collname = 'C')),
       (SELECT string_agg(i.relname, ', ' ORDER BY i.relname) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
         WHERE x.indrelid = c.oid AND NOT x.indisvalid),
       has_table_privilege(c.oid, 'TRUNCATE'), has_table_privilege(c.oid, 'UPDATE, DELETE')
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND n.nspname = current_schema()
 ORDER BY c.relname;

-- name: health_vacuum
SELECT relname, n_dead_tup, n_live_tup
  FROM pg_stat_user_tables
 WHERE schemaname = current_schema() AND n_dead_tup > :least AND n_dead_tup > n_live_tup
 ORDER BY relname;

-- name: health_slots
SELECT CAST(slot_name AS text) FROM pg_replication_slots WHERE NOT active ORDER BY 1;
