/* Making a pseudo-terminal. */
#define _GNU_SOURCE
#include "WormholeCLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Opens the program's end, of the given size. Returns its descriptor, or -1. */
static int open_program_end(int own, int rows, int columns, int for_output) {
  char name[64];
  int error = ptsname_r(own, name, sizeof name);
  if (error != 0) errno = error;
  if (error != 0 || grantpt(own) == -1 || unlockpt(own) == -1) return -1;
  int program = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (program == -1) return -1;
  struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
  struct termios settings;
  int result = ioctl(program, TIOCSWINSZ, &size);
  if (result == 0 && for_output) {
    result = tcgetattr(program, &settings);
    if (result == 0) {
      cfmakeraw(&settings);
      result = tcsetattr(program, TCSANOW, &settings);
    }
  }
  if (result == 0) return program;
  error = errno;
  close(program);
  errno = error;
  return -1;
}

int linux_pseudo_terminal(int rows, int columns, int for_output, int ends[2]) {
  int own = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | (for_output ? O_NONBLOCK : 0));
  if (own == -1) return -1;
  int program = open_program_end(own, rows, columns, for_output);
  if (program == -1) {
    int error = errno;
    close(own);
    errno = error;
    return -1;
  }
  ends[0] = own;
  ends[1] = program;
  return 0;
}
