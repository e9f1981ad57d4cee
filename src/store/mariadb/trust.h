/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether tables may be used: their columns must compare names byte by byte, as mortise init makes
 * them. A column of another type compares by a collation, in which two locks may be one.
 */
#ifndef MRT_STORE_MARIADB_TRUST_H
#define MRT_STORE_MARIADB_TRUST_H

#define MRT_MARIADB_TABLES "('session', 'queue', 'ticket', 'cell', 'version', 'row_lock')"
#define MRT_MARIADB_UNDO "; undo that, or choose another database"

/* An expression for one text: a column that is different, or NULL. A column that this version does
 * not have may be missing. */
#define MRT_MARIADB_FAULT(schema)                                                                  \
    "(SELECT CONCAT(table_name, '.', column_name, ' is of the type ', column_type,"                \
    " ', which mortise init did not give it" MRT_MARIADB_UNDO "') FROM information_schema.columns" \
    " WHERE table_schema = " schema " AND table_name IN " MRT_MARIADB_TABLES " AND column_name IN" \
    " ('id', 'epoch', 'expires', 'label', 'name', 'touched', 'number', 'session', 'queue',"        \
    " 'weight', 'kind', 'capacity', 'since', 'asked', 'value', 'delay', 'version', 'fence',"       \
    " 'writer') AND CONCAT(table_name, '.', column_name, ' ', column_type) NOT IN"                 \
    " ('session.id binary(16)', 'session.epoch bigint(20) unsigned', 'session.expires "            \
    "bigint(20)',"                                                                                 \
    " 'session.label varbinary(1024)', 'queue.name varbinary(760)', 'queue.touched bigint(20)',"   \
    " 'ticket.number bigint(20) unsigned', 'ticket.session binary(16)', 'ticket.id binary(16)',"   \
    " 'ticket.queue varbinary(760)', 'ticket.weight bigint(20)', 'ticket.kind varbinary(64)',"     \
    " 'ticket.capacity bigint(20)', 'ticket.since bigint(20)', 'ticket.asked bigint(20)',"         \
    " 'ticket.value varbinary(4096)', 'ticket.delay bigint(20)', 'cell.name varbinary(760)',"      \
    " 'cell.version bigint(20) unsigned', 'cell.fence bigint(20) unsigned',"                       \
    " 'cell.writer binary(16)', 'cell.value varbinary(4096)', 'version.number int(11)',"           \
    " 'row_lock.name varbinary(760)') LIMIT 1)"

#endif
