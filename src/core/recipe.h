/* The recipes, as data over the one engine. */
#ifndef MRT_CORE_RECIPE_H
#define MRT_CORE_RECIPE_H

#include "core/engine.h"

extern const struct mrt_recipe mrt_mutex;

#endif
