/* What Glibc's Swift module hides. Plain functions over system calls; errors come back in errno. */
#ifndef WORMHOLE_CLINUX_H
#define WORMHOLE_CLINUX_H

int wormhole_placeholder(void);

#endif
