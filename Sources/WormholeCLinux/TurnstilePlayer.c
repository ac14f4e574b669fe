#define _GNU_SOURCE
#include "TurnstileState.h"

/* What the threads of a scheduled process do in place of running and waiting on their own. */

#ifdef FAULT_POINTS

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int32_t turnstile_process = -1;

static struct player *here(void) { return &turnstile_world->players[turnstile_player]; }

/* Passes the turn on if the schedule says so; returns once this player has the turn. */
static void take_turn(void) {
  int32_t own = turnstile_player, next = turnstile_choose(own);
  if (next == own) return;
  turnstile_hand_to(next);
  turnstile_await(own);
}

/* The path of a call, below the container; without a descriptor the name is the path. */
static void path_of(char *path, size_t size, int descriptor, const char *name) {
  path[0] = 0;
  if (descriptor >= 0) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t count = readlink(link, path, size - 1);
    path[count > 0 ? count : 0] = 0;
  }
  size_t length = strlen(path);
  if (name && strcmp(name, ".") != 0)
    snprintf(path + length, size - length, "%s%s", length ? "/" : "", name);
  /* The container's own path is the same in each line. */
  char *inside = strncmp(path, "/", 1) == 0 ? strstr(path, "/now") : NULL;
  if (inside && (inside[4] == '/' || inside[4] == 0)) {
    inside += inside[4] == '/' ? 5 : 4;
    memmove(path, inside, strlen(inside) + 1);
  }
}

static uint64_t hash_of(const char *bytes, size_t count) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t index = 0; index < count; index += 1)
    hash = (hash ^ (uint8_t)bytes[index]) * 0x100000001b3u;
  return hash;
}

/* A removed file counts under its last name. */
static void hash_path(char *path, uint64_t *object, uint64_t *folder) {
  static const char mark[] = " (deleted)";
  for (char *found; (found = strstr(path, mark)) != NULL;)
    memmove(found, found + sizeof mark - 1, strlen(found + sizeof mark - 1) + 1);
  char *slash = strrchr(path, '/');
  *object = hash_of(path, strlen(path));
  *folder = hash_of(path, slash ? (size_t)(slash - path) : 0);
}

static const char socket_path[] = "socket";

static void set_path(struct player *player, int descriptor, const char *name) {
  player->path[0] = 0;
  player->object = player->folder = 0;
  if (turnstile_world->mode != mode_race) return;
  char path[1024];
  path_of(path, sizeof path, descriptor, name);
  /* Numbers of processes differ from run to run. */
  if (strncmp(path, "/proc/", 6) == 0 || strncmp(path, "proc/", 5) == 0) {
    strcpy(path, "/proc");
    player->is_local = 1;
  }
  /* So do those of sockets. */
  if (strncmp(path, "socket:", 7) == 0) strcpy(path, socket_path);
  size_t length = strlen(path), most = sizeof player->path - 1;
  snprintf(player->path, sizeof player->path, "%s", path + (length > most ? length - most : 0));
  hash_path(path, &player->object, &player->folder);
}

void turnstile_also(int descriptor, const char *name) {
  if (!turnstile_plays() || turnstile_world->mode != mode_race) return;
  char path[1024];
  path_of(path, sizeof path, descriptor, name);
  hash_path(path, &here()->other, &here()->other_folder);
}

void turnstile_only_reads(void) {
  if (turnstile_plays()) here()->only_reads = 1;
}

static void note_watch(int descriptor) {
  struct world *world = turnstile_world;
  char path[1024];
  uint64_t object, folder;
  path_of(path, sizeof path, descriptor, NULL);
  hash_path(path, &object, &folder);
  if (world->watch_count < turnstile_max_watches) world->watches[world->watch_count] = object;
  world->watch_count += 1;
}

static int is_watched(uint64_t object) {
  struct world *world = turnstile_world;
  if (world->watch_count > turnstile_max_watches) return 1;
  for (int32_t number = 0; number < world->watch_count; number += 1)
    if (world->watches[number] == object) return 1;
  return 0;
}

static int is_directory(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The inode, if a round observes files. */
static uint64_t file_of(int descriptor) {
  struct stat status;
  if (!turnstile_world->first_path[0] || fstat(descriptor, &status) == -1) return 0;
  return status.st_ino;
}

/* Locks that are used before the race have the same bits in all rounds. The others share one bit,
   and so do signals between threads. */
static const uint64_t signals = 1ull << 63, other_locks = 1ull << 62;

static void note_lock(const void *address) {
  struct process *process = &turnstile_world->processes[here()->process];
  int32_t number = 0;
  while (number < process->lock_count && process->locks[number] != address) number += 1;
  if (number == process->lock_count) {
    if (turnstile_world->mode != mode_preparing || number == turnstile_max_locks) {
      here()->used_locks |= other_locks;
      return;
    }
    process->locks[process->lock_count++] = address;
  }
  here()->used_locks |= 1ull << number;
}

/* A later lock at the same address is another lock. Whether the memory of a lock is used again
   depends on what the threads before the fork have freed, and differs from run to run. */
void turnstile_forget_lock(const void *address) {
  if (turnstile_process < 0) return;
  struct process *process = &turnstile_world->processes[turnstile_process];
  for (int32_t number = 0; number < process->lock_count; number += 1)
    if (process->locks[number] == address) process->locks[number] = NULL;
}

int turnstile_at(int32_t call, int changes, int is_local, int32_t access, int descriptor,
                 const char *name) {
  struct player *player = here();
  /* Its last call has been made by now. */
  if (player->changes) turnstile_world->changes += 1;
  player->changes = 0;
  player->call = call;
  player->is_local = is_local;
  if (access == turnstile_reads_status)
    access = is_directory(descriptor) ? turnstile_reads_listing : turnstile_reads_file;
  if (access == turnstile_watches) note_watch(descriptor);
  player->access = player->only_reads ? turnstile_reads_name : access;
  set_path(player, descriptor, name);
  player->file = name ? 0 : file_of(descriptor);
  if (player->access == turnstile_reads_file && strncmp(player->path, "anon_inode:", 11) == 0)
    player->access = turnstile_reads_notices;
  player->is_watched = is_watched(player->object) || is_watched(player->folder) ||
                       is_watched(player->other_folder) ||
                       strcmp(player->path, socket_path) == 0;
  player->state = player_ready;
  turnstile_world->error = 0;
  take_turn();
  player->changes = changes && !player->only_reads;
  player->only_reads = 0;
  player->other = player->other_folder = 0;
  int error = turnstile_world->error;
  turnstile_world->error = 0;
  return error;
}

void turnstile_changed(void) {
  if (!turnstile_plays()) return;
  turnstile_world->changes += 1;
  here()->used_locks |= signals;
}

/* Waits; the access is what the player does once it continues. */
static void block(enum player_state state, const void *address, int64_t deadline, int32_t access,
                  const char *why) {
  struct player *player = here();
  if (player->changes) turnstile_world->changes += 1;
  player->changes = 0;
  player->state = (int32_t)state;
  player->address = address;
  player->deadline = deadline;
  player->seen = turnstile_world->changes;
  player->call = turnstile_waits;
  player->is_local = 0;
  player->access = access;
  /* A lock file stays the object. */
  if (access != turnstile_writes_file) player->object = player->folder = 0;
  snprintf(player->path, sizeof player->path, "%s", why);
  take_turn();
  player->state = player_ready;
}

int turnstile_flock(int descriptor, int operation) {
  for (;;) {
    int result = flock(descriptor, operation | LOCK_NB);
    if (result == 0 || errno != EWOULDBLOCK) return result;
    /* A failed attempt has changed nothing, and must not wake another one. */
    here()->changes = 0;
    block(player_tries_again, NULL, INT64_MAX, turnstile_writes_file, "for a lock file");
  }
}

int turnstile_epoll(int set, uint64_t *key, int milliseconds) {
  int64_t deadline = INT64_MAX;
  if (milliseconds >= 0) deadline = turnstile_world->clock + milliseconds * 1000000LL;
  for (;;) {
    here()->used_locks |= signals;
    struct epoll_event event;
    int count = epoll_wait(set, &event, 1, 0);
    if (count == 1) *key = event.data.u64;
    if (count != 0 || turnstile_world->clock >= deadline) return count;
    block(player_tries_again, NULL, deadline, turnstile_reads_notices, "for notices");
  }
}

int turnstile_poll(void *entries, int count, int milliseconds) {
  int64_t deadline = INT64_MAX;
  if (milliseconds >= 0) deadline = turnstile_world->clock + milliseconds * 1000000LL;
  for (;;) {
    here()->used_locks |= signals;
    int found = poll(entries, (nfds_t)count, 0);
    if (found != 0 || turnstile_world->clock >= deadline) return found;
    block(player_tries_again, NULL, deadline, turnstile_reads_notices, "for a socket");
  }
}

/* The names of a directory in an order that does not depend on the file system. */
static int compare(const void *left, const void *right) {
  return strcmp(*(char *const *)left + 19, *(char *const *)right + 19);
}

void turnstile_sort(void *entries, int64_t size) {
  char *bytes = entries, *copy = malloc((size_t)size), *starts[2048];
  size_t count = 0;
  if (!copy) return;
  memcpy(copy, bytes, (size_t)size);
  for (int64_t offset = 0; offset < size; count += 1) {
    if (count == 2048) break;
    starts[count] = copy + offset;
    uint16_t length;
    memcpy(&length, copy + offset + 16, sizeof length);
    offset += length;
  }
  if (count < 2048) {
    qsort(starts, count, sizeof starts[0], compare);
    for (size_t index = 0; index < count; index += 1) {
      uint16_t length;
      memcpy(&length, starts[index] + 16, sizeof length);
      memcpy(bytes, starts[index], length);
      bytes += length;
    }
  }
  free(copy);
}

/* The clock. */

int64_t turnstile_clock(int is_calendar) {
  here()->used_clock = 1;
  /* A nanosecond later at each look: a loop until a moment comes to its end. */
  int64_t now = turnstile_world->clock++;
  return now + (is_calendar ? 1900000000000000000LL : 1000000000000000LL);
}

static int64_t to_world(int64_t until) {
  if (until < 0 || until > INT64_MAX / 2) return INT64_MAX;
  return until - 1000000000000000LL;
}

/* The kernel's times are no part of the schedule. A file is as old as the round, and a directory
   has just changed: a listing that relies on the age of a directory is always made again. */
int64_t turnstile_modified(int is_directory) {
  return (is_directory ? turnstile_world->clock : 0) + 1900000000000000000LL;
}

uint64_t turnstile_random(void) {
  struct process *process = &turnstile_world->processes[here()->process];
  uint64_t word = turnstile_world->seed * 1000003 + (uint64_t)here()->process * 7919;
  word += ++process->draws * 0x9e3779b97f4a7c15u;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
  word = (word ^ word >> 27) * 0x94d049bb133111ebu;
  return word ^ word >> 31;
}

int turnstile_loses_notices(void) {
  if (!turnstile_plays()) return 0;
  struct process *process = &turnstile_world->processes[here()->process];
  int loses = process->loses_notices;
  process->loses_notices = 0;
  return loses;
}

/* Locks and conditions within a process. */

static void release(enum player_state state, const void *address) {
  for (int32_t number = 0; number < turnstile_max_players; number += 1) {
    struct player *player = &turnstile_world->players[number];
    if (player->state == (int32_t)state && player->address == address &&
        player->process == here()->process)
      player->state = player_ready;
  }
}

void turnstile_lock(pthread_mutex_t *mutex) {
  while (pthread_mutex_trylock(mutex) != 0)
    block(player_wants_lock, mutex, INT64_MAX, turnstile_accesses_nothing,
          "for another thread's lock");
  note_lock(mutex);
}

void turnstile_unlocked(pthread_mutex_t *mutex) { release(player_wants_lock, mutex); }

void turnstile_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until) {
  pthread_mutex_unlock(mutex);
  turnstile_unlocked(mutex);
  block(player_awaits_broadcast, condition, to_world(until), turnstile_accesses_nothing,
        "for another thread");
  turnstile_lock(mutex);
}

void turnstile_broadcast(pthread_cond_t *condition) {
  release(player_awaits_broadcast, condition);
}

/* Threads. */

int32_t turnstile_expect_thread(void) {
  if (!turnstile_plays()) return -1;
  for (int32_t number = 0; number < turnstile_max_players; number += 1) {
    struct player *player = &turnstile_world->players[number];
    if (player->state != player_free) continue;
    int32_t rank = player->rank;
    memset(player, 0, sizeof *player);
    player->rank = rank;
    player->process = here()->process;
    player->state = player_ready;
    player->call = turnstile_begins;
    return number;
  }
  turnstile_set_text("more threads than players");
  abort();
}

void turnstile_start_thread(int32_t player, int error, pthread_t thread) {
  if (player < 0) return;
  if (error) turnstile_world->players[player].state = player_free;
  turnstile_world->players[player].handle = thread;
}

void turnstile_begin_thread(int32_t player) {
  if (player < 0) return;
  turnstile_player = player;
  turnstile_world->players[player].thread = (pid_t)syscall(SYS_gettid);
  turnstile_await(player);
}

void turnstile_end_thread(void) {
  if (!turnstile_plays()) return;
  struct player *player = here();
  player->state = player_free;
  player->call = turnstile_ends;
  player->path[0] = 0;
  player->access = turnstile_accesses_nothing;
  turnstile_changed();
  /* Somebody may wait in order to join this thread. */
  release(player_awaits_broadcast, player);
  int32_t next = turnstile_choose(turnstile_player);
  turnstile_player = -1;
  turnstile_hand_to(next);
}

void turnstile_name_thread(const char *name) {
  if (turnstile_plays()) snprintf(here()->name, sizeof here()->name, "%s", name);
}

void turnstile_join(pthread_t thread) {
  if (!turnstile_plays()) return;
  int32_t number = turnstile_world->process_count;
  for (; number < turnstile_max_players; number += 1) {
    struct player *player = &turnstile_world->players[number];
    while (player->state != player_free && player->process == here()->process &&
           pthread_equal(player->handle, thread))
      block(player_awaits_broadcast, player, INT64_MAX, turnstile_accesses_nothing,
            "for the end of a thread");
  }
}

void turnstile_note(int64_t value) {
  if (!turnstile_plays()) return;
  struct process *process = &turnstile_world->processes[here()->process];
  if (process->note_count < turnstile_max_notes) process->notes[process->note_count++] = value;
}

void turnstile_set_text(const char *text) {
  if (!turnstile_plays()) return;
  snprintf(turnstile_world->processes[here()->process].text, turnstile_max_text, "%s", text);
}

void turnstile_begin(void) {
  if (!turnstile_plays()) return;
  struct process *process = &turnstile_world->processes[here()->process];
  /* A replacement, and the last process, begin when the race is on, or over. */
  if (turnstile_world->mode != mode_preparing) return;
  process->is_ready = 1;
  here()->state = player_parked;
  here()->call = turnstile_begins;
  here()->path[0] = 0;
  here()->access = turnstile_accesses_nothing;
  take_turn();
}

void turnstile_finish(void) {
  if (!turnstile_plays()) return;
  struct player *player = here();
  turnstile_world->processes[player->process].is_ready = 1;
  /* Not free: the threads still wait for their turns. */
  for (int32_t number = 0; number < turnstile_max_players; number += 1) {
    struct player *other = &turnstile_world->players[number];
    if (other->state != player_free && other->process == player->process)
      other->state = player_dead;
  }
  player->state = player_done;
  player->call = turnstile_ends;
  player->path[0] = 0;
  player->access = turnstile_accesses_nothing;
  turnstile_changed();
  turnstile_hand_to(turnstile_choose(turnstile_player));
  for (;;) pause();
}

#endif
