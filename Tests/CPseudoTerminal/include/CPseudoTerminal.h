#pragma once

/// Makes a pseudo-terminal of the given size: the test's end and the program's end. Returns 0, or
/// -1 with errno.
int pseudo_terminal_make(int rows, int columns, int *test, int *program);

/// Returns a number that changes with the terminal's treatment of typed input.
unsigned long pseudo_terminal_mode(int program);

/// Reads the program's output; waits for some output. Returns 0 or less at the end.
long pseudo_terminal_read(int test, void *bytes, unsigned long size);

/// Writes typed input. Returns whether the terminal took all of the input.
int pseudo_terminal_type(int test, const void *bytes, unsigned long size);

void pseudo_terminal_close(int end);
