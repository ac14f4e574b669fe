#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

/// Returns the process's number of allocator calls so far, or -1 in a build without the counter.
long allocation_count(void);

#endif
