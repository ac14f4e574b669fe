#include "CForking.h"

#include <unistd.h>

int forking_copy(void) {
  int process = fork();
  if (process != 0) return process;
  alarm(60);
  for (;;) pause();
}
