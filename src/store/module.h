/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores in modules: shared objects loaded when a URI names their store, so that a program
 * that does not use one need not load, or even have, its client library.
 *
 * A module has its own copy of base/, hidden, and one exported function, MRT_MODULE_ENTRY.
 * The one thing of base that is shared is the particulars of an error, which belong to the
 * thread: the host hands over its functions for errors. The interface between the two is the port's
 * structures as they are, so a module goes with the library it was built with, and says so.
 */
#ifndef MRT_STORE_MODULE_H
#define MRT_STORE_MODULE_H

#include "base/error.h"
#include "core/store.h"

#define MRT_MODULE_ENTRY "mortise_store_module"
/* Differs if the port differs. */
#define MRT_MODULE_SHAPE                                                      \
    (sizeof(struct mrt_store_ops) << 48 | sizeof(struct mrt_command) << 32 |  \
     sizeof(struct mrt_event) << 16 | sizeof(struct mrt_store_options) << 8 | \
     sizeof(mortise_capabilities))

struct mrt_module_host {
    const char *version;
    uint64_t shape;
    void (*note_detail)(const char *text);
    void (*copy_detail)(char detail[MRT_ERROR_DETAIL_MAX]);
    mortise_error_kind (*kind_of)(int error);
};

/* The module's store; NULL: built for another version of the library. */
typedef const struct mrt_store_ops *mrt_module_entry(const struct mrt_module_host *host);

/*
 * Loads `file`, once a process. It is searched in $MORTISE_MODULES if that is set; otherwise beside
 * the program or library that contains this code, and then in the directory where mortise was
 * configured to be installed. A set-user-ID program searches only the last. A file that users other
 * than root and this one could have put there is refused.
 * 0; MORTISE_ENOTSUPPORTED, saying what `store` lacks; MORTISE_EUNSAFE.
 */
int mrt_module_load(const char *file, const char *store, const struct mrt_store_ops **ops);
/* The same for a module of another kind, `what` in messages, each time it is called: its symbol
   `entry`. */
int mrt_module_open(const char *file, const char *what, const char *entry, void **symbol);
/* MORTISE_ENOTSUPPORTED, saying that. */
int mrt_module_other_version(const char *file);

#endif
