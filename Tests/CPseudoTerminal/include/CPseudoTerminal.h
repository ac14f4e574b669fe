#pragma once

/// Makes a pseudo-terminal of that size: the test's end and the program's. 0, or -1 with errno.
int pseudo_terminal_make(int rows, int columns, int *test, int *program);

/// A number that changes with how the terminal treats what is typed.
unsigned long pseudo_terminal_mode(int program);

/// Reads what the program has written; waits for some. 0 or less at the end.
long pseudo_terminal_read(int test, void *bytes, unsigned long size);

/// Writes what is typed. Whether all of it was taken.
int pseudo_terminal_type(int test, const void *bytes, unsigned long size);

void pseudo_terminal_close(int end);
