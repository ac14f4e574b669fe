#define _GNU_SOURCE
#include "CPseudoTerminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

int pseudo_terminal_make(int rows, int columns, int *test, int *program) {
  int leader = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  char name[64];
  if (leader == -1) return -1;
  if (grantpt(leader) == -1 || unlockpt(leader) == -1 ||
      ptsname_r(leader, name, sizeof name) != 0) {
    close(leader);
    return -1;
  }
  int follower = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  struct winsize size = {.ws_row = rows, .ws_col = columns};
  if (follower == -1 || ioctl(follower, TIOCSWINSZ, &size) == -1) {
    close(leader);
    return -1;
  }
  *test = leader;
  *program = follower;
  return 0;
}

unsigned long pseudo_terminal_mode(int program) {
  struct termios settings;
  if (tcgetattr(program, &settings) == -1) return 0;
  return settings.c_lflag ^ (unsigned long)settings.c_iflag << 24 ^
         (unsigned long)settings.c_oflag << 44;
}

long pseudo_terminal_read(int test, void *bytes, unsigned long size) {
  long count;
  do count = read(test, bytes, size);
  while (count == -1 && errno == EINTR);
  return count;
}

int pseudo_terminal_type(int test, const void *bytes, unsigned long size) {
  return write(test, bytes, size) == (long)size;
}

void pseudo_terminal_close(int end) { close(end); }
