/* The state that all scheduled processes share; see Turnstile.h. */
#ifndef WORMHOLE_TURNSTILE_STATE_H
#define WORMHOLE_TURNSTILE_STATE_H

#include "include/Turnstile.h"
#include <stddef.h>
#include <sys/types.h>

enum { turnstile_max_locks = 62 };

enum player_state {
  player_free,
  player_ready,
  /* A main thread that waits for the beginning of the race, or for its process's turn. */
  player_parked,
  player_wants_lock,
  player_awaits_broadcast,
  /* Tries again once another player has changed something. */
  player_tries_again,
  player_done,
  player_dead,
};

struct player {
  uint32_t word;
  int32_t state, process, call, is_local, changes, rank, access, only_reads, is_watched, used_clock;
  uint64_t used_locks, object, folder, other, other_folder, file;
  const void *address;
  int64_t deadline;
  uint64_t seen;
  pid_t thread;
  pthread_t handle;
  char name[16], path[112];
};

struct process {
  pid_t number;
  int32_t is_killed, replaces, loses_notices, is_ready;
  int64_t suspended_until;
  uint64_t draws;
  int32_t note_count, lock_count;
  const void *locks[turnstile_max_locks];
  int64_t notes[turnstile_max_notes];
  char text[turnstile_max_text];
};

enum { turnstile_keeper = -1 };
enum turnstile_mode { mode_preparing, mode_race, mode_check };
enum turnstile_request { request_outcome, request_kill };

struct world {
  /* Words for waiting: the number of rounds asked for and run, and the keeper's turn. */
  uint32_t asked, answered, keeper_word;
  int32_t mode, process_count, is_drawn, request, request_target, outcome, current;
  int32_t move_count, step_count, change_count, error;
  uint64_t seed, changes, fingerprint;
  int64_t clock, jumps;
  struct process processes[turnstile_max_processes];
  struct player players[turnstile_max_players];
  struct turnstile_move moves[turnstile_max_moves];
  int32_t change_steps[turnstile_max_moves];
  /* The directories that a process of this round has watched, by the hashes of their paths. */
  int32_t watch_count;
  uint64_t watches[turnstile_max_watches];
  char first_path[256], second_path[256];
  char trouble[256];
  struct turnstile_step steps[turnstile_max_steps];
};

extern struct world *turnstile_world;
/* The number of this process, also for threads that are no longer players. */
extern int32_t turnstile_process;

void turnstile_sleep_on(uint32_t *word, uint32_t value, int milliseconds);
void turnstile_wake(uint32_t *word);
/* Decides who continues, from the player that has the turn; the keeper asks as turnstile_keeper. */
int32_t turnstile_choose(int32_t from);
void turnstile_hand_to(int32_t player);
void turnstile_await(int32_t player);

#endif
