/*
 * The mutex: one holder, who may acquire again. One ticket of weight 1 in a queue of
 * capacity 1 stands for all threads of a client.
 */
#include "core/recipe.h"

const struct mrt_recipe mrt_mutex = {
    .kind = "mutex",
    .capacity = 1,
    .reentrant = true,
};
