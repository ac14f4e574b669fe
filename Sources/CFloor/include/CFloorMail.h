/* What a queued message costs at least: the system calls of sending and of receiving one. */
#ifndef WORMHOLE_CFLOOR_MAIL_H
#define WORMHOLE_CFLOOR_MAIL_H

#include <stddef.h>

/* A mailbox: staging/, inbox/, claimed/ and receipts/ in one directory. */
struct floor_mailbox {
  int staging, inbox, claimed, receipts, notices;
  unsigned long next;
};

/* watched: 0 the inbox, for who receives; 1 the receipts, for who sends. */
int floor_mailbox_open(struct floor_mailbox *mailbox, const char *path, int watched);
void floor_mailbox_close(struct floor_mailbox *mailbox);
/* Writes a new file and moves it into the inbox; syncs it first if asked, and the inbox after. */
int floor_post(
  struct floor_mailbox *mailbox, const void *bytes, size_t size, int sync, int is_last);
/* Receives for ever: list, and of each file in order claim, read and unlink; the last of a round is
   moved to the receipts instead. */
int floor_receive(struct floor_mailbox *mailbox);
/* Waits for a receipt and removes it. */
int floor_await_receipt(struct floor_mailbox *mailbox);

#endif
