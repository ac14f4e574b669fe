#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

/// Calls of the allocator in this process so far, or -1 where they are not counted.
long allocation_count(void);

#endif
