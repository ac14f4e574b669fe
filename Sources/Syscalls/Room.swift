package enum SyscallsRoom {}
