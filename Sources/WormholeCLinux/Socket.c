#define _GNU_SOURCE
#include "WormholeCLinux.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef FAULT_POINTS

/* The loopback interface of scheduled processes. Over TCP, the kernel delivers bytes some time
   after the call that sends them; over these sockets, before the call returns. */
static socklen_t fill_scheduled(struct sockaddr_un *address, uint16_t port) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  /* A name that begins with 0 has no file, and ends with its socket. */
  int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
                        "wormhole-turnstile.%d.%d", turnstile_home(), port);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int scheduled_socket(void) {
  return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static int scheduled_listen(uint16_t port) {
  struct sockaddr_un address;
  socklen_t size = fill_scheduled(&address, port);
  int descriptor = scheduled_socket();
  if (descriptor == -1) return -1;
  if (bind(descriptor, (struct sockaddr *)&address, size) == 0 && listen(descriptor, 128) == 0)
    return descriptor;
  int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

#endif

int linux_socket(int is_version_six) {
#ifdef FAULT_POINTS
  if (turnstile_exists()) return scheduled_socket();
#endif
  return socket(
      is_version_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int linux_connect_loopback(int descriptor, int is_version_six, uint16_t port) {
#ifdef FAULT_POINTS
  if (turnstile_exists()) {
    struct sockaddr_un address;
    socklen_t size = fill_scheduled(&address, port);
    return connect(descriptor, (struct sockaddr *)&address, size);
  }
#endif
  int on = 1;
  /* Without this option a small message waits for the acknowledgement of the one before. */
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int result;
  if (is_version_six) {
    struct sockaddr_in6 address;
    memset(&address, 0, sizeof address);
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_addr = in6addr_loopback;
    result = connect(descriptor, (struct sockaddr *)&address, sizeof address);
  } else {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    result = connect(descriptor, (struct sockaddr *)&address, sizeof address);
  }
  return result == -1 && errno == EINPROGRESS ? 0 : result;
}

/* The socket address of an address in digits; 0 for any other text. */
static socklen_t linux_fill_address(
    struct sockaddr_storage *into, const char *text, uint16_t port) {
  struct sockaddr_in *four = (struct sockaddr_in *)into;
  struct sockaddr_in6 *six = (struct sockaddr_in6 *)into;
  memset(into, 0, sizeof *into);
  if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    return sizeof *four;
  }
  if (inet_pton(AF_INET6, text, &six->sin6_addr) != 1) return 0;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(port);
  return sizeof *six;
}

int linux_address_kind(const char *text) {
  struct sockaddr_storage address;
  if (linux_fill_address(&address, text, 0) == 0) return -1;
  if (address.ss_family == AF_INET) {
    struct in_addr four = ((struct sockaddr_in *)&address)->sin_addr;
    return ntohl(four.s_addr) >> 24 == 127 ? 1 : 0;
  }
  return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&address)->sin6_addr) ? 3 : 2;
}

int linux_listen(const char *text, uint16_t port, uint16_t *actual) {
#ifdef FAULT_POINTS
  if (turnstile_exists()) {
    *actual = port;
    return scheduled_listen(port);
  }
#endif
  struct sockaddr_storage address;
  socklen_t size = linux_fill_address(&address, text, port);
  if (size == 0) {
    errno = EINVAL;
    return -1;
  }
  int on = 1;
  int descriptor = linux_socket(address.ss_family == AF_INET6);
  if (descriptor == -1) return -1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(descriptor, (struct sockaddr *)&address, size) == -1 || listen(descriptor, 128) == -1 ||
      getsockname(descriptor, (struct sockaddr *)&address, &size) == -1) {
    int error = errno;
    close(descriptor);
    errno = error;
    return -1;
  }
  /* The port is at the same place in both kinds of addresses. */
  *actual = ntohs(((struct sockaddr_in *)&address)->sin_port);
  return descriptor;
}

int linux_accept(int descriptor) {
  int on = 1;
  int client = accept4(descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client != -1) setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return client;
}

ssize_t linux_receive(int descriptor, void *buffer, size_t size) {
  return recv(descriptor, buffer, size, MSG_DONTWAIT);
}

ssize_t linux_send(int descriptor, const void *bytes, size_t size) {
  return send(descriptor, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int linux_poll_two(int first, int writes, int second, int milliseconds) {
  struct pollfd entries[2];
  memset(entries, 0, sizeof entries);
  entries[0].fd = first;
  entries[0].events = (short)(POLLIN | (writes ? POLLOUT : 0));
  entries[1].fd = second;
  entries[1].events = POLLIN;
#ifdef FAULT_POINTS
  if (turnstile_plays()) return turnstile_poll(entries, 2, milliseconds);
#endif
  return poll(entries, 2, milliseconds);
}

int linux_notify(const void *path, size_t length, const void *text, size_t size) {
  struct sockaddr_un address;
  if (length == 0 || length >= sizeof address.sun_path) {
    errno = EINVAL;
    return -1;
  }
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path, length);
  /* An address that begins with @ has no file. */
  if (address.sun_path[0] == '@') address.sun_path[0] = 0;
  int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor == -1) return -1;
  socklen_t address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
  ssize_t sent = sendto(
      descriptor, text, size, MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&address,
      address_size);
  int error = errno;
  close(descriptor);
  errno = error;
  return sent == -1 ? -1 : 0;
}
