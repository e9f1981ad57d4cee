/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The durable form of mortise acquire: a lock that is kept without a process. It is acquired and
 * left to nobody, and the token is all that remains; a process that has it gives the lock back,
 * from another shell or another machine.
 *
 * Invariant: a lock whose token nobody has would stay for ever. So no signal ends the command
 * between detaching and the end of the output, and if that fails the lock is given back.
 */
#include "cli/keeper/keeper.h"
#include "cli/run/locks.h"

#include <signal.h>

static int open_run(struct mrt_run *run)
{
    int code = mrt_run_open(run);
    return code ? code : mrt_run_make_locks(run);
}

static int close_run(struct mrt_run *run, int code)
{
    int error = run->client ? mortise_close(run->client) : MORTISE_OK;
    return error && !code ? mrt_cli_fail_error(NULL, error) : code;
}

/* Adopts and releases. 0 or the library's error. */
static int give_back(mortise_lock *lock, const char *token)
{
    mortise_hold hold;
    int error = mortise_adopt(lock, token, &hold);
    return error ? error : mortise_release(hold);
}

/* Detaches, and prints the token; all signals wait. */
static int leave(const struct mrt_run *run, mortise_hold hold, const struct mrt_token_place *place)
{
    char token[MORTISE_TOKEN_SIZE];
    int error = mortise_detach(hold, token);
    if (error && error != MORTISE_EUNKNOWN)
        return mrt_cli_fail_error(run->locks[0].name, error);
    int code = mrt_token_write(place, token);
    if (code)
        give_back(run->locks[0].lock, token);
    return error ? mrt_cli_fail_error(run->locks[0].name, error) : code;
}

static int acquire(const struct mrt_run *run, const struct mrt_token_place *place)
{
    mortise_hold hold;
    sigset_t all, before;
    mortise_lock *lock = run->locks[0].lock;
    int error = run->no_wait ? mortise_try_acquire(lock, &hold)
                             : mortise_acquire_until(lock, run->deadline, &hold);
    if (error == MORTISE_EBUSY || error == MORTISE_ETIMEOUT)
        return mrt_cli_fail(MRT_EXIT_BUSY, "%s: %s", run->locks[0].name, mortise_error_text(error));
    if (error)
        return mrt_cli_fail_error(run->locks[0].name, error);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int code = leave(run, hold, place);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

int mrt_detach_acquire(struct mrt_run *run, const struct mrt_token_place *place)
{
    int code = open_run(run);
    return close_run(run, code ? code : acquire(run, place));
}

int mrt_detach_release(struct mrt_run *run, const char *token)
{
    int code = open_run(run);
    if (code)
        return close_run(run, code);
    int error = give_back(run->locks[0].lock, token);
    code = error ? mrt_cli_fail_error(run->locks[0].name, error) : 0;
    return close_run(run, error == MORTISE_ENOTHELD ? MRT_EXIT_FAILED : code);
}
