#define _GNU_SOURCE
#include "CFloorMail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { largest = 1 << 20, slots = 64 };

static int make(const char *path, const char *name) {
  char full[PATH_MAX];
  snprintf(full, sizeof full, "%s/%s", path, name);
  if (mkdir(full, 0700) != 0 && errno != EEXIST) return -1;
  return open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int floor_mailbox_open(struct floor_mailbox *mailbox, const char *path, int watched) {
  if (mkdir(path, 0700) != 0 && errno != EEXIST) return -1;
  mailbox->staging = make(path, "staging");
  mailbox->inbox = make(path, "inbox");
  mailbox->claimed = make(path, "claimed");
  mailbox->receipts = make(path, "receipts");
  mailbox->next = 0;
  mailbox->handled = 0;
  mailbox->notices = watched < 0 ? -1 : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (mailbox->staging < 0 || mailbox->inbox < 0 || mailbox->claimed < 0 || mailbox->receipts < 0 ||
      (watched >= 0 && mailbox->notices < 0))
    return -1;
  char full[PATH_MAX];
  snprintf(full, sizeof full, "%s/progress", path);
  int progress = open(full, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (progress < 0 || ftruncate(progress, slots) != 0) return -1;
  mailbox->progress = mmap(NULL, slots, PROT_READ | PROT_WRITE, MAP_SHARED, progress, 0);
  close(progress);
  if (mailbox->progress == MAP_FAILED) return -1;
  if (watched < 0) return 0;
  snprintf(full, sizeof full, "%s/%s", path, watched ? "receipts" : "inbox");
  return inotify_add_watch(mailbox->notices, full, IN_MOVED_TO) < 0 ? -1 : 0;
}

void floor_mailbox_close(struct floor_mailbox *mailbox) {
  close(mailbox->staging);
  close(mailbox->inbox);
  close(mailbox->claimed);
  close(mailbox->receipts);
  if (mailbox->notices >= 0) close(mailbox->notices);
  munmap(mailbox->progress, slots);
}

int floor_post(struct floor_mailbox *mailbox, const void *const *messages, size_t count,
               size_t size, int sync, int is_last) {
  static char bytes[largest];
  uint32_t length = (uint32_t)size;
  size_t filled = 0;
  if (count * (size + sizeof length) > sizeof bytes) return -1;
  for (size_t place = 0; place < count; place++) {
    memcpy(bytes + filled, &length, sizeof length);
    memcpy(bytes + filled + sizeof length, messages[place], size);
    filled += sizeof length + size;
  }
  char name[64];
  unsigned long number = mailbox->next++;
  snprintf(name, sizeof name, "1,%020lx,%c01,%016lx,phone", number, is_last ? 'r' : 'n',
           mailbox->sender << 32 | number);
  int file = openat(mailbox->staging, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  if (write(file, bytes, filled) != (ssize_t)filled || (sync && fsync(file) != 0)) {
    close(file);
    return -1;
  }
  close(file);
  if (renameat(mailbox->staging, name, mailbox->inbox, name) != 0) return -1;
  return sync ? fsync(mailbox->inbox) : 0;
}

static void wait_for_notice(struct floor_mailbox *mailbox) {
  char buffer[16384];
  struct pollfd ready = {mailbox->notices, POLLIN, 0};
  poll(&ready, 1, -1);
  while (read(mailbox->notices, buffer, sizeof buffer) > (ssize_t)sizeof buffer / 2) {
  }
}

static int compare(const void *left, const void *right) { return strcmp(left, right); }

/* The receiver's handler of a message. The compiler must not know the handler, or it would optimize
   the call away. */
static size_t handled;
static void handle(const void *message, size_t size) {
  handled += size + *(const unsigned char *)message;
}
static void (*volatile handler)(const void *message, size_t size) = handle;

static int hand_over(struct floor_mailbox *mailbox, const char *content, size_t size) {
  size_t place = 0;
  for (size_t start = 0; start < size; place++) {
    uint32_t length;
    memcpy(&length, content + start, sizeof length);
    start += sizeof length;
    if (length > size - start || place == slots) return -1;
    void *message = malloc(length);
    if (!message) return -1;
    memcpy(message, content + start, length);
    start += length;
    __atomic_store_n(mailbox->progress + place, 1, __ATOMIC_RELEASE);
    handler(message, length);
    __atomic_store_n(mailbox->progress + place, 2, __ATOMIC_RELEASE);
    mailbox->handled++;
    free(message);
  }
  return 0;
}

int floor_receive(struct floor_mailbox *mailbox, size_t wanted) {
  enum { most = 65536, longest = 64 };
  size_t before = mailbox->handled;
  char(*names)[longest] = malloc((size_t)most * longest);
  char *content = malloc(largest);
  if (!names || !content) return -1;
  for (;;) {
    int copy = openat(mailbox->inbox, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fdopendir(copy);
    if (!listing) return -1;
    int count = 0;
    for (struct dirent *entry; count < most && (entry = readdir(listing));)
      if (entry->d_name[0] != '.') strncpy(names[count++], entry->d_name, longest);
    closedir(listing);
    if (count == 0) {
      wait_for_notice(mailbox);
      continue;
    }
    qsort(names, (size_t)count, longest, compare);
    for (int place = 0; place < count; place++) {
      char *name = names[place];
      if (renameat(mailbox->inbox, name, mailbox->claimed, name) != 0) return -1;
      int file = openat(mailbox->claimed, name, O_RDONLY | O_CLOEXEC);
      struct stat status;
      if (file < 0 || fstat(file, &status) != 0) return -1;
      if (read(file, content, largest) != status.st_size) return -1;
      close(file);
      if (hand_over(mailbox, content, (size_t)status.st_size) != 0) return -1;
      int result = name[23] == 'r' ? renameat(mailbox->claimed, name, mailbox->receipts, name)
                                   : unlinkat(mailbox->claimed, name, 0);
      if (result != 0) return -1;
      if (wanted > 0 && mailbox->handled - before >= wanted) {
        free(names);
        free(content);
        return 0;
      }
    }
  }
}

int floor_await_receipt(struct floor_mailbox *mailbox) {
  for (;;) {
    int copy = openat(mailbox->receipts, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fdopendir(copy);
    if (!listing) return -1;
    int found = 0;
    for (struct dirent *entry; (entry = readdir(listing));)
      if (entry->d_name[0] != '.') {
        found = 1;
        unlinkat(mailbox->receipts, entry->d_name, 0);
      }
    closedir(listing);
    if (found) return 0;
    wait_for_notice(mailbox);
  }
}

int floor_line_open(struct floor_line *line, const char *path, int side) {
  if (mkdir(path, 0700) != 0 && errno != EEXIST) return -1;
  line->staging = make(path, side ? "staging1" : "staging0");
  line->there = make(path, side ? "left" : "right");
  line->here = make(path, side ? "right" : "left");
  line->next = 0;
  line->notices = inotify_init1(IN_CLOEXEC);
  if (line->staging < 0 || line->there < 0 || line->here < 0 || line->notices < 0) return -1;
  char full[PATH_MAX];
  snprintf(full, sizeof full, "%s/%s", path, side ? "right" : "left");
  return inotify_add_watch(line->notices, full, IN_MOVED_TO) < 0 ? -1 : 0;
}

void floor_line_close(struct floor_line *line) {
  close(line->staging);
  close(line->there);
  close(line->here);
  close(line->notices);
}

int floor_tell(struct floor_line *line, const void *bytes, size_t size) {
  char name[64];
  snprintf(name, sizeof name, "%020lx,q,0123456789abcdef", line->next++);
  int file = openat(line->staging, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  ssize_t written = write(file, bytes, size);
  close(file);
  if (written != (ssize_t)size) return -1;
  return renameat(line->staging, name, line->there, name);
}

int floor_listen(struct floor_line *line, void *bytes, size_t size) {
  char buffer[4096] __attribute__((aligned(8)));
  if (read(line->notices, buffer, sizeof buffer) <= 0) return -1;
  const char *name = ((struct inotify_event *)(void *)buffer)->name;
  int file = openat(line->here, name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  ssize_t count = read(file, bytes, size);
  close(file);
  if (unlinkat(line->here, name, 0) != 0) return -1;
  return (int)count;
}
