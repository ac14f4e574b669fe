#define _GNU_SOURCE
#include "TurnstileState.h"

/* The order: who may continue, and who does. */

_Thread_local int32_t turnstile_player = -1;

#ifdef FAULT_POINTS

#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct world *turnstile_world;

void turnstile_sleep_on(uint32_t *word, uint32_t value, int milliseconds) {
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  syscall(SYS_futex, word, FUTEX_WAIT, value, milliseconds < 0 ? NULL : &time, NULL, 0);
}

void turnstile_wake(uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void turnstile_hand_to(int32_t player) {
  uint32_t *word = &turnstile_world->keeper_word;
  turnstile_world->current = player;
  if (player != turnstile_keeper) word = &turnstile_world->players[player].word;
  __atomic_store_n(word, 1, __ATOMIC_RELEASE);
  turnstile_wake(word);
}

void turnstile_await(int32_t player) {
  uint32_t *word = &turnstile_world->players[player].word;
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) turnstile_sleep_on(word, 0, -1);
  __atomic_store_n(word, 0, __ATOMIC_RELAXED);
}

/* The processes prepare one after the other: the first one that is not ready. */
static int32_t preparing(void) {
  struct world *world = turnstile_world;
  for (int32_t number = 0; number < world->process_count - 1; number += 1)
    if (!world->processes[number].is_ready && world->processes[number].replaces < 0) return number;
  return -1;
}

static int can_continue(struct player *player, int32_t latest, int is_suspended) {
  struct world *world = turnstile_world;
  if (world->mode == mode_preparing && player->process > latest) return 0;
  if (world->processes[player->process].suspended_until > world->clock != is_suspended) return 0;
  switch (player->state) {
  case player_ready: return 1;
  case player_awaits_broadcast: return player->deadline <= world->clock;
  case player_tries_again:
    return player->seen != world->changes || player->deadline <= world->clock;
  default: return 0;
  }
}

static uint64_t mask_of(int is_suspended) {
  uint64_t mask = 0;
  int32_t latest = preparing();
  for (int32_t number = 0; number < turnstile_max_players; number += 1)
    if (can_continue(&turnstile_world->players[number], latest, is_suspended))
      mask |= 1ull << number;
  return mask;
}

static uint64_t enabled(void) { return mask_of(0); }

/* Moves the clock to the next moment at which somebody can continue. */
static int advance(void) {
  struct world *world = turnstile_world;
  int64_t next = INT64_MAX;
  int32_t latest = preparing();
  for (int32_t number = 0; number < turnstile_max_players; number += 1) {
    struct player *player = &world->players[number];
    if (world->mode == mode_preparing && player->process > latest) continue;
    int64_t suspended = world->processes[player->process].suspended_until, moment;
    switch (player->state) {
    case player_ready: moment = suspended; break;
    case player_awaits_broadcast: moment = player->deadline; break;
    case player_tries_again:
      moment = player->seen != world->changes ? suspended : player->deadline;
      break;
    default: continue;
    }
    if (moment == INT64_MAX) continue;
    if (moment < suspended) moment = suspended;
    if (moment < next) next = moment;
  }
  if (next == INT64_MAX) return 0;
  if (next > world->clock) world->clock = next;
  world->jumps += 1;
  return 1;
}

static int has_ended(int32_t number) {
  struct world *world = turnstile_world;
  struct process *process = &world->processes[number];
  /* A replacement that nobody needs. */
  if (process->replaces >= 0 && !world->processes[process->replaces].is_killed) return 1;
  int32_t state = world->players[number].state;
  return state == player_done || state == player_dead;
}

/* Whether the phase is over: everybody is prepared, has ended, or has been checked. */
static int is_over(void) {
  struct world *world = turnstile_world;
  int32_t last = world->process_count - 1;
  if (world->mode == mode_preparing) return preparing() == -1;
  if (world->mode == mode_check) return has_ended(last);
  for (int32_t number = 0; number < last; number += 1)
    if (!has_ended(number)) return 0;
  return 1;
}

static int32_t finish(enum turnstile_outcome outcome) {
  turnstile_world->request = request_outcome;
  turnstile_world->outcome = (int32_t)outcome;
  return turnstile_keeper;
}

/* The same player; or else one of the same process; or else the next one. */
static int32_t usual(int32_t from, uint64_t mask) {
  struct player *players = turnstile_world->players;
  if (from >= 0 && mask & 1ull << from) return from;
  for (int32_t number = 0; from >= 0 && number < turnstile_max_players; number += 1)
    if (mask & 1ull << number && players[number].process == players[from].process) return number;
  for (int32_t offset = 1; offset <= turnstile_max_players; offset += 1) {
    int32_t number = (from + offset) % turnstile_max_players;
    if (mask & 1ull << number) return number;
  }
  return turnstile_keeper;
}

static int32_t drawn(int32_t from, uint64_t mask, int32_t step) {
  struct world *world = turnstile_world;
  for (int32_t number = 0; number < world->change_count; number += 1)
    if (from >= 0 && world->change_steps[number] == step) world->players[from].rank = -1 - number;
  int32_t best = -1;
  for (int32_t number = 0; number < turnstile_max_players; number += 1)
    if (mask & 1ull << number)
      if (best < 0 || world->players[number].rank > world->players[best].rank) best = number;
  return best;
}

static void add_to_fingerprint(const void *bytes, size_t count) {
  for (size_t index = 0; index < count; index += 1)
    turnstile_world->fingerprint =
        (turnstile_world->fingerprint ^ ((const uint8_t *)bytes)[index]) * 0x100000001b3u;
}

static uint64_t inode_at(const char *path) {
  struct stat status;
  return path[0] && lstat(path, &status) == 0 ? status.st_ino : 0;
}

static struct turnstile_step *record(int32_t from, uint64_t mask) {
  struct world *world = turnstile_world;
  struct turnstile_step *step = &world->steps[world->step_count++];
  memset(step, 0, offsetof(struct turnstile_step, thread));
  step->player = from;
  step->process = -1;
  step->call = turnstile_begins;
  step->path[0] = step->thread[0] = 0;
  if (from >= 0) {
    struct player *player = &world->players[from];
    step->process = player->process;
    step->call = player->call;
    step->is_local = player->is_local;
    step->access = player->access;
    step->is_watched = player->is_watched;
    step->used_clock = player->used_clock;
    step->used_locks = player->used_locks;
    player->used_clock = 0;
    player->used_locks = 0;
    step->object = player->object;
    step->folder = player->folder;
    step->other = player->other;
    step->other_folder = player->other_folder;
    step->file = player->file;
    memcpy(step->thread, player->name, sizeof step->thread);
    memcpy(step->path, player->path, sizeof step->path);
  }
  step->first_file = inode_at(world->first_path);
  step->second_file = inode_at(world->second_path);
  step->enabled = mask;
  step->suspended = mask_of(1);
  step->clock = world->clock;
  step->move = -1;
  return step;
}

int32_t turnstile_choose(int32_t from) {
  struct world *world = turnstile_world;
  world->clock += 1000;
  if (from >= 0 && world->players[from].changes) {
    world->changes += 1;
    world->players[from].changes = 0;
  }
  if (is_over()) return finish(turnstile_over);
  uint64_t mask = enabled();
  while (mask == 0 && advance()) mask = enabled();
  if (mask == 0) return finish(turnstile_deadlock);
  if (world->mode != mode_race) return usual(from, mask);

  if (world->step_count == turnstile_max_steps) return finish(turnstile_too_long);
  int32_t number = world->step_count;
  struct turnstile_step *step = record(from, mask);
  int32_t next = world->is_drawn ? drawn(from, mask, number) : usual(from, mask);
  for (int32_t index = 0; index < world->move_count; index += 1) {
    struct turnstile_move *move = &world->moves[index];
    if (move->step != number) continue;
    step->move = move->kind;
    struct process *process = &world->processes[move->target % turnstile_max_processes];
    switch (move->kind) {
    case turnstile_switch:
      if (!((mask | step->suspended) & 1ull << move->target)) return finish(turnstile_astray);
      next = move->target;
      world->processes[world->players[next].process].suspended_until = 0;
      break;
    case turnstile_kill:
      world->request = request_kill;
      world->request_target = move->target;
      next = turnstile_keeper;
      break;
    case turnstile_suspend:
      process->suspended_until = world->clock + move->value;
      mask = enabled();
      while (mask == 0 && advance()) mask = enabled();
      if (mask == 0) return finish(turnstile_deadlock);
      next = usual(from, mask);
      break;
    case turnstile_fail:
      if (from < 0 || step->call < 0 || world->players[from].process != move->target)
        return finish(turnstile_astray);
      world->error = (int32_t)move->value;
      next = from;
      break;
    default: process->loses_notices = 1;
    }
  }
  step->chosen = next;
  int32_t words[] = {step->player, step->call, next, (int32_t)mask};
  add_to_fingerprint(words, sizeof words);
  add_to_fingerprint(step->path, strlen(step->path));
  return next;
}

#endif
