/* SPDX-License-Identifier: Apache-2.0 */
/* Which mutant runs, in the builds that have any. */
#include "mutants.h"

int mrt_mutant_on = MRT_MUTANT_NONE;
