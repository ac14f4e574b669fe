/* What a queued message costs at least: the system calls of sending and of receiving one. */
#ifndef WORMHOLE_CFLOOR_MAIL_H
#define WORMHOLE_CFLOOR_MAIL_H

#include <stddef.h>

/* A mailbox: staging/, inbox/, claimed/ and receipts/ in one directory. */
struct floor_mailbox {
  int staging, inbox, claimed, receipts, notices;
  unsigned long next;
  unsigned char *progress;
};

/* watched: 0 the inbox, for who receives; 1 the receipts, for who sends. */
int floor_mailbox_open(struct floor_mailbox *mailbox, const char *path, int watched);
void floor_mailbox_close(struct floor_mailbox *mailbox);
/* Writes messages of one size, one after the other with its length before each, to a new file and
   moves it into the inbox; syncs it first if asked, and the inbox after. */
int floor_post(struct floor_mailbox *mailbox, const void *const *messages, size_t count,
               size_t size, int sync, int is_last);
/* Receives for ever: list, and of each file in order claim, read, hand over each message in memory
   of its own, with a note of its beginning and its end in a mapped file, and unlink; the last of a
   round is moved to the receipts instead. */
int floor_receive(struct floor_mailbox *mailbox);
/* Waits for a receipt and removes it. */
int floor_await_receipt(struct floor_mailbox *mailbox);

/* Two directories, in each of which one of two processes hears of files of the other. */
struct floor_line {
  int staging, there, here, notices;
  unsigned long next;
};

int floor_line_open(struct floor_line *line, const char *path, int side);
void floor_line_close(struct floor_line *line);
/* Writes a new file and moves it to where the other side listens. */
int floor_tell(struct floor_line *line, const void *bytes, size_t size);
/* Waits for a file, reads and unlinks it; answers its size. */
int floor_listen(struct floor_line *line, void *bytes, size_t size);

#endif
