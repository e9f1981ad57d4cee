/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two clients for all tests of a suite, made and freed by its group. To be included by the
 * program's only file.
 */
#ifndef TEST_API_TWO_H
#define TEST_API_TWO_H

#include "api_fixture.h"

static mortise_client *client, *other;

static int open_clients(void **state)
{
    (void)state;
    client = api_open(0);
    other = api_open(0);
    return 0;
}

static int close_clients(void **state)
{
    (void)state;
    api_close(client);
    api_close(other);
    return 0;
}

#endif
