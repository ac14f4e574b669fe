#define _GNU_SOURCE
#include "WormholeCTesting.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void wait_for_the_end(void) {
  alarm(60);
  for (;;) pause();
}

int forking_copy(void) {
  int process = fork();
  if (process != 0) return process;
  wait_for_the_end();
  return 0;
}

int forking_copy_after(void (*body)(void)) {
  int process = fork();
  if (process != 0) return process;
  body();
  wait_for_the_end();
  return 0;
}

int forking_copy_of_copy(int number, const char *path) {
  int ends[2], process = -1;
  if (pipe(ends) == -1) return -1;
  int copy = fork();
  if (copy == 0) {
    int file = open(path, O_RDONLY);
    dup2(file, number);
    process = fork();
    if (process == 0) wait_for_the_end();
    write(ends[1], &process, sizeof process);
    _exit(0);
  }
  close(ends[1]);
  if (read(ends[0], &process, sizeof process) != sizeof process) process = -1;
  close(ends[0]);
  return process;
}

/* Whether each other thread of this process sleeps; also true where /proc cannot tell. */
static int others_sleep(void) {
  DIR *threads = opendir("/proc/self/task");
  if (!threads) return 1;
  int sleep = 1;
  for (struct dirent *thread; sleep && (thread = readdir(threads));) {
    char path[64], text[512];
    long number = strtol(thread->d_name, NULL, 10);
    if (number == 0 || number == syscall(SYS_gettid)) continue;
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", number);
    int file = open(path, O_RDONLY);
    ssize_t length = file == -1 ? 0 : read(file, text, sizeof text - 1);
    if (file != -1) close(file);
    text[length > 0 ? length : 0] = 0;
    char *name = strrchr(text, ')');
    sleep = !name || strncmp(name, ") R", 3) != 0;
  }
  closedir(threads);
  return sleep;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Until the other threads have slept for a hundredth of a second, for two seconds at most: a thread
   that runs may have a lock of the Swift runtime, which no thread of the copy would give back. */
static void wait_for_others(void) {
  double begin = seconds(), rest = begin;
  while (seconds() - begin < 2 && seconds() - rest < 0.01) {
    if (!others_sleep()) rest = seconds();
    sched_yield();
  }
}

int forking_do(int by_clone, void (*body)(void)) {
  wait_for_others();
  int process = by_clone ? (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
  if (process == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  if (process == -1 || waitpid(process, &status, 0) != process) return -1;
  return status == 0 ? 0 : -1;
}

int forking_become(unsigned user, unsigned group) {
  if (setgroups(0, NULL) == -1 || setresgid(group, group, group) == -1) return -1;
  return setresuid(user, user, user);
}

static int refuse(unsigned one, unsigned other, int error) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int forking_refuse(int error) { return refuse(SYS_openat2, SYS_renameat2, error); }

int forking_refuse_threads(void) { return refuse(SYS_clone3, SYS_clone, EAGAIN); }

static int limit(int resource, unsigned long count) {
  struct rlimit limit = {.rlim_cur = count, .rlim_max = count};
  return setrlimit(resource, &limit);
}

int forking_limit_descriptors(unsigned long count) { return limit(RLIMIT_NOFILE, count); }

int forking_limit_threads(unsigned long count) { return limit(RLIMIT_NPROC, count); }

static struct sigaction kept_action;
static volatile sig_atomic_t chained_signals;

int testing_keep_action(int number) { return sigaction(number, NULL, &kept_action); }

int testing_put_back_action(int number) {
  /* Ends a process in which the signal is sent again and again. */
  alarm(30);
  return sigaction(number, &kept_action, NULL);
}

static void count_and_chain(int number) {
  chained_signals = chained_signals + 1;
  if (chained_signals > 1000) _exit(1);
  kept_action.sa_handler(number);
}

int testing_chain_signal(int number) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = count_and_chain;
  sigemptyset(&action.sa_mask);
  return sigaction(number, &action, &kept_action);
}

int testing_chained_signals(void) { return chained_signals; }

void testing_end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }

int testing_cut_file_system(const char *path) {
  /* XFS_IOC_GOINGDOWN and EXT4_IOC_SHUTDOWN have the same number; 2: do not flush the log. */
  uint32_t without_flushing = 2;
  int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory == -1) return -1;
  int result = ioctl(directory, _IOR('X', 125, uint32_t), &without_flushing);
  close(directory);
  return result;
}

static struct sockaddr_in place_of(const char *address, int port) {
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  inet_pton(AF_INET, address, &place.sin_addr);
  return place;
}

int testing_port_is_free(int port) {
  int number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (number == -1) return 0;
  struct sockaddr_in place = place_of("127.0.0.1", port);
  int is_free = bind(number, (struct sockaddr *)&place, sizeof place) == 0;
  close(number);
  return is_free;
}

int testing_enter_network(const char *network) {
  int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  int other = open(network, O_RDONLY | O_CLOEXEC);
  int result = own == -1 || other == -1 ? -1 : setns(other, CLONE_NEWNET);
  int error = errno;
  if (other != -1) close(other);
  if (result == 0) return own;
  if (own != -1) close(own);
  errno = error;
  return -1;
}

int testing_leave_network(int descriptor) {
  int result = setns(descriptor, CLONE_NEWNET);
  close(descriptor);
  return result;
}

int testing_connect(const char *network, const char *address, int port, int milliseconds) {
  int own = network ? testing_enter_network(network) : -1;
  if (network && own == -1) return -1;
  /* A socket belongs to the namespace that its thread is in when the socket is made. */
  int number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int error = errno;
  /* A thread that stayed there would run other tests in a foreign network. */
  if (network && testing_leave_network(own) == -1) abort();
  if (number == -1) { errno = error; return -1; }
  struct sockaddr_in place = place_of(address, port);
  int result = connect(number, (struct sockaddr *)&place, sizeof place);
  if (result == -1 && errno == EINPROGRESS) {
    struct pollfd poll_one = {.fd = number, .events = POLLOUT};
    socklen_t size = sizeof error;
    result = poll(&poll_one, 1, milliseconds) == 1 ? 0 : -1;
    if (result == -1) errno = ETIMEDOUT;
    else if (getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size) == -1 || error != 0) {
      errno = error;
      result = -1;
    }
  }
  if (result == 0) result = fcntl(number, F_SETFL, fcntl(number, F_GETFL) & ~O_NONBLOCK);
  if (result == -1) {
    error = errno;
    close(number);
    errno = error;
    return -1;
  }
  int one = 1;
  setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return number;
}

int testing_wait_for_bytes(int descriptor, int milliseconds) {
  struct pollfd poll_one = {.fd = descriptor, .events = POLLIN};
  return poll(&poll_one, 1, milliseconds);
}

static int64_t read_clock(clockid_t clock) {
  struct timespec time;
  if (clock_gettime(clock, &time) == -1) abort();
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t testing_time_of_thread(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
int64_t testing_time_of_process(void) { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }
