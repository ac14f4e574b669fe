#include <stdlib.h>
#include <unistd.h>

/* Lets a statically linked program start on a machine without /proc.

   Before main, the Swift runtime of a static program reads its own path at /proc/self/exe, and
   aborts the process if it finds none. It needs no path if SWIFT_ROOT is set. So, where the link
   cannot be read, this sets the variable, has the runtime read it, and restores the environment.
   All of that comes before main, on the only thread: no child inherits the variable, and a value
   that the user has set stays as it is. */

/* Of the runtime, which keeps the result. Weak: the checksum of a C program needs no Swift. */
extern const char *swift_getRootPath(void) __attribute__((weak));

/* The runtime's own constructors have no priority, so this one, which has one, is called first. */
__attribute__((constructor(101))) static void state_root_of_runtime(void) {
  static const char name[] = "SWIFT_ROOT";
  char byte;
  if (readlink("/proc/self/exe", &byte, 1) != -1 || swift_getRootPath == NULL) return;
  const char *given = getenv(name);
  /* The runtime takes an empty value for none. */
  if (given != NULL && *given != 0) return;
  if (setenv(name, "/", 1) == -1) return;
  swift_getRootPath();
  if (given == NULL) unsetenv(name); else setenv(name, "", 1);
}
