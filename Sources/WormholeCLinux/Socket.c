#define _GNU_SOURCE
#include "WormholeCLinux.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

int linux_socket(int is_version_six) {
  return socket(
      is_version_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int linux_connect_loopback(int descriptor, int is_version_six, uint16_t port) {
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
  return poll(entries, 2, milliseconds);
}
