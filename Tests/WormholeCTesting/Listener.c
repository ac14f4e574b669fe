#define _GNU_SOURCE
#include "WormholeCTesting.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int testing_listen(int is_version_six, unsigned short *port) {
  int family = is_version_six ? AF_INET6 : AF_INET;
  int listener = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener == -1) return -1;
  union {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
  } address;
  memset(&address, 0, sizeof address);
  socklen_t size = is_version_six ? sizeof address.six : sizeof address.four;
  if (is_version_six) {
    address.six.sin6_family = AF_INET6;
    address.six.sin6_addr = in6addr_loopback;
  } else {
    address.four.sin_family = AF_INET;
    address.four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  if (bind(listener, &address.any, size) == -1 || listen(listener, 64) == -1 ||
      getsockname(listener, &address.any, &size) == -1) {
    close(listener);
    return -1;
  }
  *port = ntohs(is_version_six ? address.six.sin6_port : address.four.sin_port);
  return listener;
}

int testing_accept(int listener) {
  int connection = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  int on = 1;
  if (connection != -1) setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return connection;
}

void testing_reset_at_close(int connection) {
  struct linger linger = {1, 0};
  setsockopt(connection, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}
