#ifndef C_FLOOR_PEERS_H
#define C_FLOOR_PEERS_H

#include <stddef.h>
#include <stdint.h>

/* A connection to a server that speaks lines of text: Redis or NATS. */
struct floor_peer {
  int socket;
  size_t begin, end;
  char bytes[16384];
};

/* Return 0, or -1 with errno. */
int floor_peer_open_path(struct floor_peer *peer, const char *path);
int floor_peer_open_port(struct floor_peer *peer, int port);
void floor_peer_close(struct floor_peer *peer);

/* Redis. The numbers that arrive are -1 after a failure. */
int floor_redis_publish(struct floor_peer *peer, const char *channel, int64_t number);
int floor_redis_subscribe(struct floor_peer *peer, const char *channel);
int64_t floor_redis_hear(struct floor_peer *peer);
int floor_redis_push(struct floor_peer *peer, const char *list, int64_t number);
/* Pushes a value some times, without waiting for a reply in between. */
int floor_redis_push_many(struct floor_peer *peer, const char *list, const char *value, size_t size,
                          int count);
int floor_redis_delete(struct floor_peer *peer, const char *list);
int64_t floor_redis_pop(struct floor_peer *peer, const char *list);

/* NATS. */
int floor_nats_begin(struct floor_peer *peer);
int floor_nats_publish(struct floor_peer *peer, const char *subject, int64_t number);
int floor_nats_subscribe(struct floor_peer *peer, const char *subject);
int64_t floor_nats_hear(struct floor_peer *peer);

/* A SQLite database with a number, through the library that the machine may have. */
struct floor_database {
  void *library;
  void *handle;
  void *statements[4];
};

/* Returns 0, -1 after a failure, or -2 without the library. */
int floor_database_open(struct floor_database *database, const char *path);
/* Adds one in a transaction of its own. */
int floor_database_add(struct floor_database *database);
int64_t floor_database_number(struct floor_database *database);
void floor_database_close(struct floor_database *database);

#endif
