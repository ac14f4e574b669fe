/* Clients of the systems that `wormhole-bench --compare` measures. */

#define _GNU_SOURCE

#include "CFloorPeers.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Connections */

static int open_address(struct floor_peer *peer, int family, const struct sockaddr *address,
                        socklen_t size) {
  peer->begin = peer->end = 0;
  peer->socket = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (peer->socket < 0) return -1;
  if (connect(peer->socket, address, size) == 0) return 0;
  int failure = errno;
  floor_peer_close(peer);
  errno = failure;
  return -1;
}

int floor_peer_open_path(struct floor_peer *peer, const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(address.sun_path, path);
  return open_address(peer, AF_UNIX, (struct sockaddr *)&address, sizeof(address));
}

int floor_peer_open_port(struct floor_peer *peer, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (open_address(peer, AF_INET, (struct sockaddr *)&address, sizeof(address)) != 0) return -1;
  int yes = 1;
  return setsockopt(peer->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

void floor_peer_close(struct floor_peer *peer) {
  if (peer->socket >= 0) close(peer->socket);
  peer->socket = -1;
}

static int put(struct floor_peer *peer, const char *text, size_t size) {
  while (size > 0) {
    ssize_t count = send(peer->socket, text, size, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return -1;
    text += count;
    size -= (size_t)count;
  }
  return 0;
}

/* Reads a line into `line`, without its end; returns its length. */
static int get(struct floor_peer *peer, char *line, size_t size) {
  size_t length = 0;
  while (1) {
    while (peer->begin < peer->end) {
      char byte = peer->bytes[peer->begin++];
      if (byte == '\n') {
        if (length > 0 && line[length - 1] == '\r') length--;
        line[length] = 0;
        return (int)length;
      }
      if (length < size - 1) line[length++] = byte;
    }
    ssize_t count = recv(peer->socket, peer->bytes, sizeof(peer->bytes), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return -1;
    peer->begin = 0;
    peer->end = (size_t)count;
  }
}

/* Reads some lines, the last of which stays in `line`. */
static int skip(struct floor_peer *peer, int count, char *line, size_t size) {
  for (int index = 0; index < count; index++)
    if (get(peer, line, size) < 0) return -1;
  return 0;
}

/* Redis */

static int command(struct floor_peer *peer, const char *verb, const char *key, int64_t number) {
  char text[256], line[256];
  int size = snprintf(text, sizeof(text), "%s %s %lld\r\n", verb, key, (long long)number);
  if (put(peer, text, (size_t)size) != 0 || get(peer, line, sizeof(line)) < 0) return -1;
  return line[0] == ':' ? 0 : -1;
}

int floor_redis_publish(struct floor_peer *peer, const char *channel, int64_t number) {
  return command(peer, "PUBLISH", channel, number);
}

int floor_redis_push(struct floor_peer *peer, const char *list, int64_t number) {
  return command(peer, "RPUSH", list, number);
}

int floor_redis_push_many(struct floor_peer *peer, const char *list, const char *value, size_t size,
                          int count) {
  char head[256], line[256];
  int length = snprintf(head, sizeof(head), "*3\r\n$5\r\nRPUSH\r\n$%zu\r\n%s\r\n$%zu\r\n",
                        strlen(list), list, size);
  size_t each = (size_t)length + size + 2;
  char *all = malloc(each * (size_t)count);
  if (!all) return -1;
  for (int index = 0; index < count; index++) {
    char *one = all + each * (size_t)index;
    memcpy(one, head, (size_t)length);
    memcpy(one + length, value, size);
    memcpy(one + length + size, "\r\n", 2);
  }
  int result = put(peer, all, each * (size_t)count);
  free(all);
  for (int index = 0; result == 0 && index < count; index++)
    if (get(peer, line, sizeof(line)) < 0 || line[0] != ':') result = -1;
  return result;
}

int floor_redis_delete(struct floor_peer *peer, const char *list) {
  char text[256], line[256];
  int size = snprintf(text, sizeof(text), "DEL %s\r\n", list);
  if (put(peer, text, (size_t)size) != 0 || get(peer, line, sizeof(line)) < 0) return -1;
  return line[0] == ':' ? 0 : -1;
}

int floor_redis_subscribe(struct floor_peer *peer, const char *channel) {
  char text[256], line[256];
  int size = snprintf(text, sizeof(text), "SUBSCRIBE %s\r\n", channel);
  /* *3, $9, subscribe, $n, the channel, :1 */
  if (put(peer, text, (size_t)size) != 0) return -1;
  return skip(peer, 6, line, sizeof(line));
}

int64_t floor_redis_hear(struct floor_peer *peer) {
  char line[256];
  /* *3, $7, message, $n, the channel, $n, the number */
  return skip(peer, 7, line, sizeof(line)) == 0 ? strtoll(line, NULL, 10) : -1;
}

int64_t floor_redis_pop(struct floor_peer *peer, const char *list) {
  char text[256], line[256];
  int size = snprintf(text, sizeof(text), "BLPOP %s 0\r\n", list);
  /* *2, $n, the list, $n, the number */
  if (put(peer, text, (size_t)size) != 0 || skip(peer, 5, line, sizeof(line)) != 0) return -1;
  return strtoll(line, NULL, 10);
}

/* NATS */

int floor_nats_begin(struct floor_peer *peer) {
  static const char hello[] = "CONNECT {\"verbose\":false,\"pedantic\":false}\r\nPING\r\n";
  char line[8192];
  if (get(peer, line, sizeof(line)) < 0 || put(peer, hello, sizeof(hello) - 1) != 0) return -1;
  do {
    if (get(peer, line, sizeof(line)) < 0) return -1;
  } while (strcmp(line, "PONG") != 0);
  return 0;
}

int floor_nats_publish(struct floor_peer *peer, const char *subject, int64_t number) {
  char text[256], digits[32];
  int count = snprintf(digits, sizeof(digits), "%lld", (long long)number);
  int size = snprintf(text, sizeof(text), "PUB %s %d\r\n%s\r\n", subject, count, digits);
  return put(peer, text, (size_t)size);
}

int floor_nats_subscribe(struct floor_peer *peer, const char *subject) {
  char text[256], line[256];
  /* The reply to the ping comes after the subscription. */
  int size = snprintf(text, sizeof(text), "SUB %s 1\r\nPING\r\n", subject);
  if (put(peer, text, (size_t)size) != 0) return -1;
  do {
    if (get(peer, line, sizeof(line)) < 0) return -1;
  } while (strcmp(line, "PONG") != 0);
  return 0;
}

int64_t floor_nats_hear(struct floor_peer *peer) {
  char line[256];
  while (get(peer, line, sizeof(line)) >= 0) {
    if (strcmp(line, "PING") == 0 && put(peer, "PONG\r\n", 6) != 0) return -1;
    if (strncmp(line, "MSG ", 4) != 0) continue;
    return get(peer, line, sizeof(line)) < 0 ? -1 : strtoll(line, NULL, 10);
  }
  return -1;
}

/* SQLite */

enum { begin, add, commit, number };
static const char *const texts[] = {
    "BEGIN IMMEDIATE", "UPDATE counter SET number = number + 1", "COMMIT",
    "SELECT number FROM counter"};
enum { row = 100, done = 101 };

typedef int (*open_call)(const char *, void **);
typedef int (*exec_call)(void *, const char *, void *, void *, void *);
typedef int (*prepare_call)(void *, const char *, int, void **, void *);
typedef int (*handle_call)(void *);
typedef int (*timeout_call)(void *, int);
typedef int64_t (*column_call)(void *, int);

static void *call(struct floor_database *database, const char *name) {
  return dlsym(database->library, name);
}

int floor_database_open(struct floor_database *database, const char *path) {
  static const char setup[] =
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
      "CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY, number INTEGER);"
      "INSERT OR IGNORE INTO counter VALUES (1, 0);";
  memset(database, 0, sizeof(*database));
  database->library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!database->library) return -2;
  if (((open_call)call(database, "sqlite3_open"))(path, &database->handle) != 0) return -1;
  ((timeout_call)call(database, "sqlite3_busy_timeout"))(database->handle, 10000);
  if (((exec_call)call(database, "sqlite3_exec"))(database->handle, setup, NULL, NULL, NULL) != 0)
    return -1;
  prepare_call prepare = (prepare_call)call(database, "sqlite3_prepare_v2");
  for (int index = begin; index <= number; index++)
    if (prepare(database->handle, texts[index], -1, &database->statements[index], NULL) != 0)
      return -1;
  return 0;
}

static int run(struct floor_database *database, int statement) {
  int result = ((handle_call)call(database, "sqlite3_step"))(database->statements[statement]);
  ((handle_call)call(database, "sqlite3_reset"))(database->statements[statement]);
  return result == done ? 0 : -1;
}

int floor_database_add(struct floor_database *database) {
  if (run(database, begin) != 0) return -1;
  return run(database, add) == 0 && run(database, commit) == 0 ? 0 : -1;
}

int64_t floor_database_number(struct floor_database *database) {
  void *statement = database->statements[number];
  int64_t found = -1;
  if (((handle_call)call(database, "sqlite3_step"))(statement) == row)
    found = ((column_call)call(database, "sqlite3_column_int64"))(statement, 0);
  ((handle_call)call(database, "sqlite3_reset"))(statement);
  return found;
}

void floor_database_close(struct floor_database *database) {
  if (!database->library) return;
  for (int index = begin; index <= number; index++)
    ((handle_call)call(database, "sqlite3_finalize"))(database->statements[index]);
  if (database->handle) ((handle_call)call(database, "sqlite3_close"))(database->handle);
  dlclose(database->library);
  database->library = NULL;
}
