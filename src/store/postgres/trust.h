/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a schema may be used: whether nobody else's code would run in it, and names are told
 * apart in it. Asked by mortise init before it writes, and by each connection before it reads.
 *
 * Its owner can make a trigger at any time, so the schema and what is in it must belong to this
 * user, to the role that owner= names, or to a superuser; for a user who is none, the owner of the
 * database will do as well. No name is resolved by a search path that others have filled: it is
 * pinned before this is asked.
 */
#ifndef MRT_STORE_POSTGRES_TRUST_H
#define MRT_STORE_POSTGRES_TRUST_H

/* Also trusted, by the connections of clients: r is the role, me the user. */
#define MRT_PG_DATABASE_OWNER                                               \
    " OR (NOT me.rolsuper AND (r.rolname = 'pg_database_owner' OR r.oid IN" \
    " (SELECT datdba FROM pg_database WHERE datname = current_database())))"

/* clang-format off */
#define MRT_PG_PLAIN(text) "regexp_replace(" text "::text, '[^a-zA-Z0-9_.@-]', '?', 'g')"
#define MRT_PG_OTHERS(owner)                                                                       \
    "' belongs to ' || " MRT_PG_PLAIN("pg_get_userbyid(" owner ")")                                \
    " || '; drop it, choose another schema=, or trust that role by owner='"
#define MRT_PG_TYPES                                                                               \
    "'session.id uuid', 'session.epoch bigint', 'session.expires timestamp with time zone',"       \
    " 'session.label text', 'queue.name text C', 'queue.number bigint',"                           \
    " 'queue.touched timestamp with time zone', 'ticket.session uuid', 'ticket.id uuid',"          \
    " 'ticket.queue text C', 'ticket.number bigint', 'ticket.weight bigint', 'ticket.kind text',"  \
    " 'ticket.capacity bigint', 'ticket.since timestamp with time zone', 'ticket.asked bigint',"   \
    " 'ticket.value bytea', 'ticket.linger boolean', 'ticket.delay bigint', 'cell.name text C',"   \
    " 'cell.version bigint', 'cell.fence numeric(20,0)', 'cell.writer uuid', 'cell.value bytea',"  \
    " 'version.number integer', 'row_lock.name text C'"

/* A query of one text: the first fault, or NULL. `schema` and `owner` are texts in
   SQL, `also` is MRT_PG_DATABASE_OWNER or "". A column that this version does not have may be missing. */
#define MRT_PG_FAULT(schema, owner, also)                                                          \
    "WITH s AS (SELECT oid, nspowner, nspname FROM pg_namespace WHERE nspname = " schema "),\n"    \
    "trusted AS (SELECT r.oid FROM pg_roles r, pg_roles me WHERE me.rolname = current_user"        \
    " AND (r.oid = me.oid OR r.rolname = " owner " OR r.rolsuper" also "))\n"                      \
    "SELECT 'schema ' || nspname || " MRT_PG_OTHERS("nspowner") " FROM s"                          \
    " WHERE nspowner NOT IN (SELECT oid FROM trusted)\n"                                           \
    "UNION ALL (SELECT s.nspname || '.' || c.relname || x.why || CASE x.rank WHEN 1 THEN ''"       \
    " ELSE '; undo that, or choose another schema=' END FROM s JOIN pg_class c"                    \
    " ON c.relnamespace = s.oid AND c.relname"                                                     \
    " IN ('session', 'queue', 'ticket', 'cell', 'version', 'row_lock', 'fence'),"                  \
    " LATERAL (VALUES\n"                                                                           \
    " (1, " MRT_PG_OTHERS("c.relowner") ", c.relowner NOT IN (SELECT oid FROM trusted)),\n"        \
    " (2, ' is no ordinary ' || CASE c.relname WHEN 'fence' THEN 'sequence' ELSE 'table' END,"     \
    " c.relkind <> CASE c.relname WHEN 'fence' THEN 'S'::\"char\" ELSE 'r'::\"char\" END),\n"      \
    " (3, ' has a rule', c.relhasrules AND EXISTS"                                                 \
    " (SELECT FROM pg_rewrite WHERE ev_class = c.oid)),\n"                                         \
    " (3, ' has a trigger', c.relhastriggers AND EXISTS"                                           \
    " (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal)),\n"                     \
    " (3, ' has row security', c.relrowsecurity),\n"                                               \
    " (3, ' has a constraint that computes', c.relchecks > 0),\n"                                  \
    " (3, ' has a parent or an heir', EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid)"     \
    " OR (c.relhassubclass AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid))),\n"      \
    " (3, ' has an index that computes', EXISTS (SELECT FROM pg_index"                             \
    " WHERE indrelid = c.oid AND (indexprs IS NOT NULL OR indpred IS NOT NULL))),\n"               \
    " (3, ' has a column that computes', EXISTS (SELECT FROM pg_attrdef"                           \
    " WHERE adrelid = c.oid AND pg_get_expr(adbin, adrelid) !~ '^(false|true|[0-9]+)$')),\n"       \
    " (3, (SELECT '.' || min(attname::text) || ' is of another type or collation than"             \
    " mortise init gives it' FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0"              \
    " AND NOT attisdropped AND attname IN ('id', 'epoch', 'expires', 'label', 'name', 'number',"   \
    " 'touched', 'session', 'queue', 'weight', 'kind', 'capacity', 'since', 'asked', 'value',"     \
    " 'linger', 'delay', 'version', 'fence', 'writer') AND c.relkind = 'r' AND c.relname || '.'"   \
    " || attname || ' ' || format_type(atttypid, atttypmod) || CASE attcollation WHEN 950"         \
    " THEN ' C' ELSE '' END NOT IN (" MRT_PG_TYPES ")), true))"                                    \
    " x (rank, why, so) WHERE x.so AND x.why IS NOT NULL ORDER BY x.rank, 1) LIMIT 1"
/* clang-format on */

#endif
