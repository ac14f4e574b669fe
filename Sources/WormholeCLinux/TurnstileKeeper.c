#define _GNU_SOURCE
#include "TurnstileState.h"

/* The process that forks the players, and the calls of the process that schedules. */

#ifdef FAULT_POINTS

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*role_of)(int32_t);
static pid_t keeper, home;

int turnstile_make(void) {
  if (turnstile_world) return 0;
  void *memory = mmap(NULL, sizeof *turnstile_world, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -1;
  turnstile_world = memory;
  home = getpid();
  return 0;
}

int32_t turnstile_home(void) { return (int32_t)home; }

int turnstile_exists(void) { return turnstile_world != NULL; }

static void play(int32_t number) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  turnstile_player = turnstile_process = number;
  struct player *player = &turnstile_world->players[number];
  player->thread = (pid_t)syscall(SYS_gettid);
  player->handle = pthread_self();
  turnstile_await(number);
  role_of(number);
  turnstile_finish();
}

static int fork_player(int32_t number) {
  pid_t process = fork();
  if (process == 0) play(number);
  if (process != -1) turnstile_world->processes[number].number = process;
  return process == -1 ? -1 : 0;
}

/* A replacement is forked only when it is needed. */
static int fork_players(void) {
  struct world *world = turnstile_world;
  for (int32_t number = 0; number < world->process_count; number += 1) {
    struct player *player = &world->players[number];
    snprintf(player->name, sizeof player->name, "main");
    player->process = number;
    player->call = turnstile_begins;
    int replaces = world->processes[number].replaces >= 0;
    int begins = number < world->process_count - 1 && !replaces;
    player->state = begins ? player_ready : player_parked;
    if (!replaces && fork_player(number) == -1) return -1;
  }
  return 0;
}

/* The killed processes that are not collected yet: one of the round before, and all of a round. */
static pid_t killed[1 + turnstile_max_processes];
static int32_t killed_count;

static void kill_process(int32_t number) {
  struct process *process = &turnstile_world->processes[number];
  if (process->number <= 0) return;
  kill(process->number, SIGKILL);
  killed[killed_count++] = process->number;
  process->number = 0;
}

/* Once a process is collected, its locks are free. The kernel lets a process with a watch wait for
   milliseconds before the process ends. Processes wait at the same time if all are killed before
   the first one is collected. */
static void collect(void) {
  for (int32_t index = 0; index < killed_count; index += 1)
    while (waitpid(killed[index], NULL, 0) == -1 && errno == EINTR) {}
  killed_count = 0;
}

static int carry_out_kill(void) {
  struct world *world = turnstile_world;
  int32_t target = world->request_target;
  kill_process(target);
  collect();
  world->processes[target].is_killed = 1;
  world->processes[target].suspended_until = 0;
  for (int32_t number = 0; number < turnstile_max_players; number += 1) {
    struct player *player = &world->players[number];
    if (player->state != player_free && player->process == target)
      player->state = number == target ? player_dead : player_free;
  }
  for (int32_t number = 0; number < world->process_count; number += 1)
    if (world->processes[number].replaces == target) {
      if (fork_player(number) == -1) return -1;
      world->players[number].state = player_ready;
    }
  world->changes += 1;
  return 0;
}

/* The kernel's letter for the state of a thread. */
static char state_of(struct player *player) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/task/%d/stat",
           turnstile_world->processes[player->process].number, player->thread);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file == -1 ? 0 : read(file, text, sizeof text - 1);
  if (file != -1) close(file);
  text[length > 0 ? length : 0] = 0;
  char *name = strrchr(text, ')');
  return name && name[1] ? name[2] : '?';
}

static void describe(const char *what, int32_t number) {
  struct world *world = turnstile_world;
  struct player *player = &world->players[number >= 0 ? number : 0];
  snprintf(world->trouble, sizeof world->trouble,
           "%s: process %d, thread %s, after the call of '%s'", what, player->process,
           player->name[0] ? player->name : "without a name", player->path);
}

/* Waits for the keeper's turn; false if a player has ended on its own, or waits elsewhere. */
static int await_turn(void) {
  struct world *world = turnstile_world;
  int silence = 0;
  int64_t clock = -1;
  while (__atomic_load_n(&world->keeper_word, __ATOMIC_ACQUIRE) == 0) {
    turnstile_sleep_on(&world->keeper_word, 0, 100);
    if (__atomic_load_n(&world->keeper_word, __ATOMIC_ACQUIRE) != 0) break;
    for (int32_t number = 0; number < world->process_count; number += 1) {
      struct process *process = &world->processes[number];
      int status = 0;
      if (process->number <= 0 || waitpid(process->number, &status, WNOHANG) <= 0) continue;
      process->number = 0;
      snprintf(world->trouble, sizeof world->trouble, "process %d has ended: %s %d", number,
               WIFSIGNALED(status) ? "signal" : "status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
      world->outcome = turnstile_crash;
      return 0;
    }
    int32_t current = world->current;
    if (current < 0) continue;
    int sleeps = state_of(&world->players[current]) == 'S';
    silence = world->clock == clock ? silence + (sleeps ? 60 : 1) : 0;
    clock = world->clock;
    /* A second of sleep, or a minute of work without a step. */
    if (silence < 600) continue;
    describe(sleeps ? "a thread waits where the schedule does not see it" : "a thread works on",
             current);
    world->outcome = turnstile_stuck;
    return 0;
  }
  __atomic_store_n(&world->keeper_word, 0, __ATOMIC_RELAXED);
  return 1;
}

static int lacks_process(void) {
  turnstile_world->outcome = turnstile_crash;
  snprintf(turnstile_world->trouble, sizeof turnstile_world->trouble, "no process could be made");
  return 0;
}

/* Runs one phase to its end; false if the round is over. */
static int run_phase(enum turnstile_mode mode) {
  struct world *world = turnstile_world;
  world->mode = (int32_t)mode;
  for (;;) {
    int32_t next = turnstile_choose(turnstile_keeper);
    if (next != turnstile_keeper) {
      turnstile_hand_to(next);
      if (!await_turn()) return 0;
    }
    if (world->request == request_outcome) return world->outcome == turnstile_over;
    if (carry_out_kill() == -1) return lacks_process();
  }
}

static void run_round(void) {
  struct world *world = turnstile_world;
  int32_t last = world->process_count - 1;
  if (fork_players() == -1) {
    lacks_process();
  } else if (run_phase(mode_preparing)) {
    for (int32_t number = 0; number < last; number += 1)
      if (world->players[number].state == player_parked && world->processes[number].is_ready)
        world->players[number].state = player_ready;
    if (run_phase(mode_race)) {
      for (int32_t number = 0; number < last; number += 1) {
        kill_process(number);
        for (int32_t player = 0; player < turnstile_max_players; player += 1)
          if (world->players[player].process == number && player != last)
            world->players[player].state = player_free;
      }
      collect();
      world->players[last].state = player_ready;
      run_phase(mode_check);
    } else if (world->outcome == turnstile_deadlock && world->trouble[0] == 0) {
      snprintf(world->trouble, sizeof world->trouble, "each thread waits");
    }
  }
  for (int32_t number = 0; number <= last; number += 1) kill_process(number);
  /* The process that has checked a round ends during the next round: nothing there is its own. */
  if (killed_count > 1) collect();
}

int turnstile_start_keeper(void (*role)(int32_t)) {
  role_of = role;
  keeper = fork();
  if (keeper != 0) return keeper == -1 ? -1 : 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct world *world = turnstile_world;
  for (uint32_t done = 0;; done += 1) {
    while (__atomic_load_n(&world->asked, __ATOMIC_ACQUIRE) == done)
      turnstile_sleep_on(&world->asked, done, -1);
    run_round();
    __atomic_store_n(&world->answered, done + 1, __ATOMIC_RELEASE);
    turnstile_wake(&world->answered);
  }
}

void turnstile_pin(int32_t number) {
  cpu_set_t all, one;
  if (sched_getaffinity(0, sizeof all, &all) == -1) return;
  int32_t left = number % CPU_COUNT(&all);
  for (int processor = 0; processor < CPU_SETSIZE; processor += 1) {
    if (!CPU_ISSET(processor, &all) || left-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

void turnstile_end_keeper(void) {
  if (keeper <= 0) return;
  kill(keeper, SIGKILL);
  while (waitpid(keeper, NULL, 0) == -1 && errno == EINTR) {}
  keeper = 0;
}

void turnstile_prepare(int32_t processes, uint64_t seed) {
  struct world *world = turnstile_world;
  /* The words stay: the keeper waits on them. */
  size_t begin = offsetof(struct world, keeper_word);
  memset((char *)world + begin, 0, offsetof(struct world, steps) - begin);
  world->process_count = processes;
  world->seed = seed;
  world->current = turnstile_keeper;
  world->fingerprint = 0xcbf29ce484222325u;
  for (int32_t number = 0; number < turnstile_max_processes; number += 1)
    world->processes[number].replaces = -1;
}

void turnstile_replace(int32_t process, int32_t other) {
  turnstile_world->processes[process].replaces = other;
}

int turnstile_add_move(const struct turnstile_move *move) {
  struct world *world = turnstile_world;
  if (world->move_count == turnstile_max_moves) return -1;
  world->moves[world->move_count++] = *move;
  return 0;
}

void turnstile_draw(const int32_t ranks[turnstile_max_players], const int32_t *steps, int count) {
  struct world *world = turnstile_world;
  world->is_drawn = 1;
  for (int32_t number = 0; number < turnstile_max_players; number += 1)
    world->players[number].rank = ranks[number];
  for (int32_t number = 0; number < count && number < turnstile_max_moves; number += 1)
    world->change_steps[world->change_count++] = steps[number];
}

void turnstile_observe(const char *first, const char *second) {
  struct world *world = turnstile_world;
  snprintf(world->first_path, sizeof world->first_path, "%s", first);
  snprintf(world->second_path, sizeof world->second_path, "%s", second);
}

enum turnstile_outcome turnstile_round(void) {
  struct world *world = turnstile_world;
  uint32_t number = world->asked + 1;
  __atomic_store_n(&world->asked, number, __ATOMIC_RELEASE);
  turnstile_wake(&world->asked);
  while (__atomic_load_n(&world->answered, __ATOMIC_ACQUIRE) != number)
    turnstile_sleep_on(&world->answered, number - 1, -1);
  return (enum turnstile_outcome)world->outcome;
}

int32_t turnstile_step_count(void) { return turnstile_world->step_count; }
const struct turnstile_step *turnstile_step_at(int32_t number) {
  return &turnstile_world->steps[number];
}
uint64_t turnstile_fingerprint(void) { return turnstile_world->fingerprint; }
int32_t turnstile_note_count(int32_t process) {
  return turnstile_world->processes[process].note_count;
}
int64_t turnstile_note_at(int32_t process, int32_t number) {
  return turnstile_world->processes[process].notes[number];
}
int turnstile_was_killed(int32_t process) { return turnstile_world->processes[process].is_killed; }
const char *turnstile_text(int32_t process) { return turnstile_world->processes[process].text; }
const char *turnstile_trouble(void) { return turnstile_world->trouble; }

#endif
