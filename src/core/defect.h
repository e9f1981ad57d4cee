/*
 * Seeded defects: faults that the tests plant to measure themselves. Each is one
 * switch at the place where the mistake would be made. In a build without
 * MRT_DEFECTS, which is every build that ships, a switch is the constant false.
 */
#ifndef MRT_CORE_DEFECT_H
#define MRT_CORE_DEFECT_H

#ifdef MRT_DEFECTS
/* X(name, what is broken) */
#define MRT_DEFECT_MAP(X)                                                                          \
    X(NONE, "nothing")                                                                             \
    X(GRANT_OFF_BY_ONE, "the grant rule lets one too many in")

enum mrt_defect {
#define MRT_DEFECT_NAME(name, text) MRT_DEFECT_##name,
    MRT_DEFECT_MAP(MRT_DEFECT_NAME)
#undef MRT_DEFECT_NAME
    MRT_DEFECT_COUNT
};
extern enum mrt_defect mrt_defect_on;
#define MRT_DEFECT(name) (mrt_defect_on == MRT_DEFECT_##name)
#else
#define MRT_DEFECT(name) 0
#endif

#endif
