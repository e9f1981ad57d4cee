/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leader that writes to a table of PostgreSQL, which refuses every leader but the newest.
 *
 *   ./leader ELECTION <values
 *
 * Waits until it leads. Then each line of its input is written into the row of schema.sql. The
 * store of the election is $MORTISE_URL; the table is in the database that libpq's variables name
 * ($PGHOST, $PGDATABASE, ...).
 *
 * The program does not check before a write whether it still leads. Such a check would be over
 * before the statement reaches the server: a process can be stopped, and a network can be slow, in
 * between. The statement has the fence of the leader's term, and the table compares it with the
 * largest that it has seen. A new leader therefore writes its fence first, before anything else.
 *
 * Ends with 76 if the table refuses it: a newer leader has taken over.
 */
#include <inttypes.h>
#include <libpq-fe.h>
#include <mortise.h>
#include <stdio.h>
#include <string.h>

enum { REFUSED = 76 };

static const char claim[] = "UPDATE leader_state SET fence = $1 WHERE id = 1 AND fence <= $1";
static const char write_value[] =
    "UPDATE leader_state SET fence = $1, value = $2 WHERE id = 1 AND fence <= $1";

/* 0; REFUSED: no row has so small a fence; 1: the database says why not. */
static int execute(PGconn *database, const char *statement, uint64_t fence, const char *value)
{
    char number[32];
    const char *parameters[] = {number, value};
    snprintf(number, sizeof number, "%" PRIu64, fence);
    PGresult *result =
        PQexecParams(database, statement, value ? 2 : 1, NULL, parameters, NULL, NULL, 0);
    int code = 1;
    if (PQresultStatus(result) == PGRES_COMMAND_OK)
        code = strcmp(PQcmdTuples(result), "1") == 0 ? 0 : REFUSED;
    else
        fprintf(stderr, "leader: %s", PQerrorMessage(database));
    PQclear(result);
    return code;
}

static int lead(PGconn *database, uint64_t fence)
{
    char line[1024];
    int code = execute(database, claim, fence, NULL);
    if (code == 0)
        printf("leads, fence %" PRIu64 "\n", fence);
    while (code == 0 && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        code = execute(database, write_value, fence, line);
        if (code == 0)
            printf("written: %s\n", line);
    }
    if (code == REFUSED)
        printf("refused: a newer leader has written\n");
    return code;
}

static int campaign(mortise_client *client, const char *name, PGconn *database)
{
    mortise_election *election;
    int code = 1, error = mortise_election_new(client, name, NULL, &election);
    if (!error)
        error = mortise_election_campaign(election, -1);
    if (!error)
        code = lead(database, mortise_election_fence(election));
    else
        fprintf(stderr, "leader: %s: %s\n", mortise_error_text(error), mortise_error_detail());
    return code; /* mortise_close resigns, and frees the election */
}

int main(int argc, char **argv)
{
    mortise_client *client;
    if (argc != 2) {
        fprintf(stderr, "usage: leader ELECTION <values\n");
        return 64;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    PGconn *database = PQconnectdb("");
    int code = 1, error = mortise_open(NULL, NULL, &client);
    if (PQstatus(database) != CONNECTION_OK)
        fprintf(stderr, "leader: %s", PQerrorMessage(database));
    else if (error)
        fprintf(stderr, "leader: %s: %s\n", mortise_error_text(error), mortise_error_detail());
    else
        code = campaign(client, argv[1], database);
    if (!error)
        mortise_close(client);
    PQfinish(database);
    return code;
}
