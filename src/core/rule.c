/* The grant rule, written so that no sum can overflow. */
#include "core/rule.h"

#include "core/defect.h"

bool mrt_rule_grants(uint64_t weight_ahead, uint64_t weight, uint64_t capacity)
{
    if (MRT_DEFECT(GRANT_OFF_BY_ONE) && weight_ahead <= capacity)
        return true;
    return weight <= capacity && weight_ahead <= capacity - weight;
}
