import CommandLine

/// The forms of all objects that `wormhole` writes: the same keys for the same things in every
/// verb.
extension ObjectForm {
  static var all: [ObjectForm] {
    [
      .channel, .change, .setting, .received, .queued, .sent, .context, .answer, .member, .start,
      .notice, .removed, .pairing, .finding, .error,
    ]
  }

  static let channel = ObjectForm(
    "channel", "what a channel holds, from get, watch and list",
    [
      ("channel", "its name"), ("version", "how often it was changed"), ("value", "what is there"),
      ("cleared", "whether it was cleared"), ("sent", "when it was changed"),
      ("from", "who changed it"), ("recovered", "whether this is the value before a damaged one"),
      ("damage", "why it cannot be read"),
    ])

  static let change = ObjectForm(
    "change", "what a channel holds after put, update and clear",
    [
      ("channel", "its name"), ("version", "how often it was changed"), ("value", "what is there"),
    ])

  static let setting = ObjectForm(
    "setting", "a setting, or one that has changed, from defaults",
    [("suite", "the set it belongs to"), ("key", "its name"), ("value", "what it is set to")])

  static let received = ObjectForm(
    "received", "a message, from receive",
    [
      ("delivery", "'guaranteed', 'immediate' or 'context'"), ("id", "what it was sent as"),
      ("place", "which it is of those sent together"), ("from", "who sent it"),
      ("to", "whom it was sent to"), ("kind", "what it is called by"), ("sent", "when"),
      ("attempt", "which attempt to handle it this is"),
      ("redelivered", "whether it may have been handled before"), ("value", "what it says"),
      ("file", "what its sender calls the file that comes with it"),
      ("path", "where that file is now"), ("size", "how many bytes that file has"),
    ])

  static let queued = ObjectForm(
    "queued", "a message that has not been handled, from queue",
    [
      ("id", "what it was sent as"), ("from", "who sent it"), ("to", "whom it was sent to"),
      ("kind", "what it is called by"), ("sent", "when"), ("count", "how many it holds"),
      ("size", "how many bytes it takes"), ("urgent", "whether it goes before others"),
      ("state", "'waiting', 'inHand' or 'dead'"),
      ("attempt", "which attempt to handle it is under way, or was the last"),
      ("damage", "why it cannot be read"), ("ended", "when it was given up"),
      ("reason", "why it was given up"),
    ])

  static let sent = ObjectForm(
    "sent", "a message that was sent, and what became of it, from send and queue",
    [
      ("delivery", "'guaranteed' or 'immediate'"), ("id", "what it was sent as"),
      ("from", "who sent it"), ("to", "whom it was sent to"), ("kind", "what it is called by"),
      ("count", "how many it holds"), ("file", "what its sender calls the file that goes with it"),
      (
        "end",
        "'delivered', 'cancelled', 'expired', 'givenUp', 'discarded' or 'untold', if it has ended"
      ),
      ("reason", "why it was given up"),
    ])

  static let context = ObjectForm(
    "context", "a state that a member was told, from send and queue",
    [
      ("from", "who told it"), ("to", "who was told"), ("kind", "what it is called by"),
      ("sent", "when"), ("value", "what it says"), ("received", "whether it has been received"),
    ])

  static let answer = ObjectForm(
    "answer", "how a request was answered, from request and reply",
    [
      ("from", "who asked"), ("to", "who was asked"), ("kind", "what it is called by"),
      ("answered", "whether it was answered, and not refused"), ("value", "the answer"),
      ("reason", "why it was refused"),
    ])

  static let member = ObjectForm(
    "member", "a member, from members and wake",
    [
      ("member", "its name"), ("incarnation", "what tells its latest joining from those before"),
      ("state", "'running', 'stopped' or 'not running'"), ("running", "whether it runs"),
      ("stopped", "whether it is stopped, if that can be seen"),
      ("process", "the number of the process that joined last"),
      ("program", "the name of its program"), ("joined", "when it joined last"),
      ("info", "what it tells of itself"),
    ])

  static let start = ObjectForm(
    "start", "how a member is started, from wake with --register, --show and --forget",
    [
      ("member", "its name"), ("program", "the program"), ("arguments", "what it is given"),
      ("environment", "what is set"), ("directory", "where it begins"),
    ])

  static let notice = ObjectForm(
    "notice", "a posting, from post and observe", [("notice", "the name that was posted")])

  static let removed = ObjectForm(
    "removed", "what is no more, from remove",
    [("kind", "what it was"), ("name", "its name")])

  static let pairing = ObjectForm(
    "pairing", "what a phone and its watches find of each other, from watchconnectivity",
    [
      ("active", "the watch that the phone is with"),
      ("phoneApp", "whether the phone's app is installed"),
      ("watches", "of each watch: app, inRange and complication, each true or false"),
    ])

  static let finding = ObjectForm(
    "finding", "what the doctor has found",
    [
      ("severity", "how bad it is"), ("subject", "where"), ("finding", "what"),
      ("advice", "what can be done"), ("repairable", "whether --repair mends it"),
      ("repaired", "whether --repair has mended it"),
    ])
}
