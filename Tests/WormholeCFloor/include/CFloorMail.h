/* The baseline of a queued message, its minimum cost: the system calls of sending and of receiving
   a message. */
#ifndef WORMHOLE_CFLOOR_MAIL_H
#define WORMHOLE_CFLOOR_MAIL_H

#include <stddef.h>

/* A mailbox: staging/, inbox/, claimed/ and receipts/ in one directory. `sender` distinguishes the
   processes that post to one mailbox: the names of their files contain the number. `handled` counts
   the messages that the handler has received. */
struct floor_mailbox {
  int staging, inbox, claimed, receipts, notices;
  unsigned long sender, next;
  size_t handled;
  unsigned char *progress;
};

/* watched: 0 for the inbox, by the receiver; 1 for the receipts, by the sender; -1 for neither, by
   a sender that waits for no receipt. Leaves `sender` unchanged. */
int floor_mailbox_open(struct floor_mailbox *mailbox, const char *path, int watched);
void floor_mailbox_close(struct floor_mailbox *mailbox);
/* Writes messages of equal size to a new file, one after the other and each after its length, and
   moves the file into the inbox. With `sync`, syncs the file before the move, and the inbox after
   it. */
int floor_post(struct floor_mailbox *mailbox, const void *const *messages, size_t count,
               size_t size, int sync, int is_last);
/* Receives: lists the inbox; for each file in order, claims and reads the file, and passes each
   message to the handler in memory of its own, with a note of the message's start and end in a
   mapped file; then unlinks the file. The last file of a round is moved to the receipts instead.
   Returns 0 after the file with the last of `wanted` messages; if `wanted` is 0, the loop is
   endless. */
int floor_receive(struct floor_mailbox *mailbox, size_t wanted);
/* Waits for a receipt, and removes the receipt. */
int floor_await_receipt(struct floor_mailbox *mailbox);

/* Two directories: in each, one of two processes is notified of files from the other process. */
struct floor_line {
  int staging, there, here, notices;
  unsigned long next;
};

int floor_line_open(struct floor_line *line, const char *path, int side);
void floor_line_close(struct floor_line *line);
/* Writes a new file and moves the file into the directory that the peer watches. */
int floor_tell(struct floor_line *line, const void *bytes, size_t size);
/* Waits for a file, reads and unlinks the file, and returns its size. */
int floor_listen(struct floor_line *line, void *bytes, size_t size);

#endif
