/* Which seeded defect is switched on, in the test builds that have them. */
#include "core/defect.h"

#ifdef MRT_DEFECTS
enum mrt_defect mrt_defect_on = MRT_DEFECT_NONE;
#else
typedef int mrt_no_defects; /* a translation unit may not be empty */
#endif
