#include "CLinux.h"
int wormhole_placeholder(void) { return 0; }
