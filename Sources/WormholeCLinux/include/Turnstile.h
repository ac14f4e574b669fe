/* Processes whose threads run one at a time, in an order that a schedule decides.

   A tool for tests; without FAULT_POINTS the functions are missing. Memory that is shared by all
   processes holds the state. Each thread of a scheduled process is a player, and only the player
   that has the turn runs. It passes the turn on at each fault point where the schedule says so, and
   wherever it waits: for a lock, a notice, another thread or a moment. The clock is a number that
   grows by a microsecond at each step, and jumps to the next deadline once every player waits.

   The thread that has the turn decides who gets it next: where the same player continues, a step
   costs no switch of processes. The keeper is a process that forks the players of each round,
   kills them where the schedule says so, and collects them. It has opened nothing, so the players
   of all rounds begin as the same process. */
#ifndef WORMHOLE_TURNSTILE_H
#define WORMHOLE_TURNSTILE_H

#include <pthread.h>
#include <stdint.h>

enum {
  turnstile_max_players = 64,
  turnstile_max_processes = 8,
  turnstile_max_steps = 60000,
  turnstile_max_moves = 8192,
  turnstile_max_notes = 256,
  turnstile_max_text = 400,
  turnstile_max_watches = 64,
};

/* What a schedule does at a step, in place of letting the same player continue. */
enum turnstile_kind {
  turnstile_switch, /* the target is a player */
  turnstile_kill,   /* the target is a process, as in the next three */
  turnstile_suspend,
  turnstile_fail,
  turnstile_lose,
};

struct turnstile_move {
  int32_t step, kind, target;
  /* The error's number, or the nanoseconds of a suspension. */
  int64_t value;
};

/* What a player was about to do at a step. */
enum { turnstile_waits = -1, turnstile_ends = -2, turnstile_begins = -3 };

struct turnstile_step {
  int32_t player, process, call, chosen, move, is_local, access, is_watched;
  /* What the player used since its former step: whether the clock, and which locks of its process
     and signals between its threads, a bit each. */
  int32_t used_clock;
  uint64_t used_locks;
  /* The players that could continue, a bit each, and those that could if their process were not
     suspended: a switch to one of them resumes the process. */
  uint64_t enabled, suspended;
  int64_t clock;
  /* Hashes of the path and of its directory; of a rename or link also those of the other name. */
  uint64_t object, folder, other, other_folder;
  /* Inodes, and 0 for none: the file of the call's descriptor, and the files that had the observed
     paths before the call. */
  uint64_t file, first_file, second_file;
  char thread[16], path[112];
};

/* What a call does with its path. Two calls of which neither writes what the other one uses have
   the same results in both orders. */
enum turnstile_access {
  turnstile_accesses_nothing, /* begins, ends, or waits for a thread of the same process */
  turnstile_accesses_else,    /* in no order the same */
  turnstile_reads_name,
  turnstile_reads_file,
  turnstile_reads_listing,
  turnstile_writes_name,
  turnstile_writes_file,
  /* Of a directory as a listing, else as a file. */
  turnstile_reads_status,
  turnstile_watches,
  turnstile_reads_notices,
  /* Other calls have the same results, but a power cut leaves more. */
  turnstile_syncs,
};

enum turnstile_outcome {
  turnstile_over,
  /* Each player waits, and nothing will end the wait. */
  turnstile_deadlock,
  turnstile_too_long,
  turnstile_crash,
  /* A thread waits where the schedule does not see it. */
  turnstile_stuck,
  /* A move cannot be made: its target waits, or has ended. */
  turnstile_astray,
};

/* Maps the shared memory; for the process that schedules. */
int turnstile_make(void);
/* Whether this process schedules, or is scheduled. */
int turnstile_exists(void);
/* The number of the process that schedules, in all processes. */
int32_t turnstile_home(void);
/* Forks the keeper. The role is called in each player's process, with its number. */
int turnstile_start_keeper(void (*role)(int32_t process));
void turnstile_end_keeper(void);
/* Keeps this process and its children on one processor: the turn goes to another process sooner. */
void turnstile_pin(int32_t number);

/* Prepares a round. Then come the processes, the moves, and the round. */
void turnstile_prepare(int32_t processes, uint64_t seed);
/* The process begins only when the other one has been killed. */
void turnstile_replace(int32_t process, int32_t other);
int turnstile_add_move(const struct turnstile_move *move);
/* Draws the order instead: the players' ranks, and the steps at which the current player gets the
   lowest rank. */
void turnstile_draw(const int32_t ranks[turnstile_max_players], const int32_t *steps, int count);
/* Records at each step of the round which files have these paths. */
void turnstile_observe(const char *first, const char *second);
/* Runs the round. The last process begins once the others have ended. */
enum turnstile_outcome turnstile_round(void);

int32_t turnstile_step_count(void);
const struct turnstile_step *turnstile_step_at(int32_t number);
/* Describes the steps in one number: equal runs have equal numbers. */
uint64_t turnstile_fingerprint(void);
int32_t turnstile_note_count(int32_t process);
int64_t turnstile_note_at(int32_t process, int32_t number);
int turnstile_was_killed(int32_t process);
const char *turnstile_text(int32_t process);
const char *turnstile_trouble(void);

/* For the players. */
extern _Thread_local int32_t turnstile_player;
static inline int turnstile_plays(void) { return turnstile_player >= 0; }
/* The end of the preparations; returns when all processes are ready. */
void turnstile_begin(void);
/* The end of this process's part: all its threads stay where they are. Returns only in a process
   that is not scheduled. */
void turnstile_finish(void);
void turnstile_note(int64_t value);
void turnstile_set_text(const char *text);
/* Before a call; returns the error to report in its place, or 0. */
int turnstile_at(int32_t call, int changes, int is_local, int32_t access, int descriptor,
                 const char *name);
/* Before a call with two names: the other one. */
void turnstile_also(int descriptor, const char *name);
/* Before an opening that makes no file. */
void turnstile_only_reads(void);
void turnstile_changed(void);
int64_t turnstile_clock(int is_calendar);
int64_t turnstile_modified(int is_directory);
uint64_t turnstile_random(void);
int turnstile_loses_notices(void);
int turnstile_flock(int descriptor, int operation);
int turnstile_epoll(int set, uint64_t *key, int milliseconds);
/* The entries are those of poll. */
int turnstile_poll(void *entries, int count, int milliseconds);
void turnstile_sort(void *entries, int64_t size);

/* For the lock with a condition. */
void turnstile_lock(pthread_mutex_t *mutex);
void turnstile_unlocked(pthread_mutex_t *mutex);
void turnstile_forget_lock(const void *mutex);
void turnstile_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until);
void turnstile_broadcast(pthread_cond_t *condition);

/* For threads: the number of the new player, which begins and ends on its own thread. */
int32_t turnstile_expect_thread(void);
void turnstile_start_thread(int32_t player, int error, pthread_t thread);
void turnstile_begin_thread(int32_t player);
void turnstile_end_thread(void);
void turnstile_name_thread(const char *name);
void turnstile_join(pthread_t thread);

#endif
