/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store beside a server that answers with the bytes of the input.
 *
 * The input is a program of steps: the client submits a command, or asks what operators ask; time
 * passes; the server sends bytes as they stand, or closes a connection. All happens on one thread
 * and by a clock of the program's own, so an input is the same run each time. The connections are
 * real ones, so the client library of a store reads them as it ships.
 *
 * With MORTISE_FUZZ_UPSTREAM=PORT the bytes come from a server there, and the program with what it
 * has sent is printed: a line of the corpus.
 */
#ifndef TEST_HOSTILE_H
#define TEST_HOSTILE_H

#include "core/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The store that is fuzzed, and the format of a URI that names it by its port. */
const struct mrt_store_ops *fuzz_store(void);
extern const char fuzz_uri[];
/* Requests of mortise_server go through calls of its library that wait. */
extern const bool fuzz_server_waits;

/* A target whose client library does not survive every byte has these too. */
#define FUZZ_CONNECTIONS 8
#define FUZZ_OPTIONAL __attribute__((weak))
/* A connection has been made. */
FUZZ_OPTIONAL void fuzz_accepted(size_t connection);
/* The client has sent this. */
FUZZ_OPTIONAL void fuzz_received(size_t connection, const uint8_t *bytes, size_t size);
/* Makes of the bytes what may be sent; returns how many those are. */
FUZZ_OPTIONAL size_t fuzz_sound(size_t connection, uint8_t *bytes, size_t size);
/* The store has answered a command; NULL: it tells of something else. */
FUZZ_OPTIONAL void fuzz_delivered(const struct mrt_command *command, const struct mrt_event *event);

/* For a client library that connects by a call that waits. Takes the input's next bytes, if those
   are next and for the connection of this number, which no other step has. False: they are not. */
bool hostile_take_bytes(uint8_t number, const uint8_t **bytes, size_t *size);
/* Whether the client may connect; then a connection is waited for. -1: none has come. */
bool hostile_accepts(void);
int hostile_accept(void);
/* The bytes from there belong to the store's steps from now on. */
void hostile_accepted(int fd, int upstream);
/* A connection to the server whose dialogue is recorded; -1: none is. */
int hostile_call_upstream(void);

#endif
