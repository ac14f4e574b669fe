import WormholeCommandLine

/// The forms of all objects that `wormhole` writes, with the same keys in every verb.
extension ObjectForm {
  static var all: [ObjectForm] {
    [
      .channel, .change, .setting, .received, .queued, .sent, .context, .answer, .member, .start,
      .notice, .removed, .pairing, .bridge, .right, .finding, .status, .lock, .event, .page,
      .error,
    ]
  }

  static let channel = ObjectForm(
    "channel", "a channel's value, from get, watch and list",
    [
      ("channel", "its name"), ("version", "number of its changes"), ("value", "its value"),
      ("cleared", "whether it was cleared"), ("writtenAt", "time of the change"),
      ("writer", "writer of the change"),
      ("recovered", "whether this is the value before a damaged value"),
      ("home", "machine whose value this is a copy of"),
      ("expiresAt", "time at which the value expires or has expired"),
      ("confirmedAt", "time when the machine last stated that the copy is its latest value"),
      ("damage", "cause of the damage"),
    ])

  static let bridge = ObjectForm(
    "bridge", "what a container's bridge does, from bridge status",
    [
      ("machine", "identity of this machine in the group"), ("group", "its group"),
      ("generation", "number of the bridge's start"),
      ("process", "process of the bridge"), ("since", "time of the start"),
      ("at", "time of this statement"), ("state", "'serving', 'connecting' or 'over'"),
      ("servers", "address of the server"), ("version", "version of the server"),
      ("clock", "seconds by which the servers' clock is ahead"),
      ("members", "the machine of each member"), ("conflicts", "members that two machines have"),
      ("machines", "the flows to and from each machine"),
      ("channels", "the home and the versions of each channel between machines"),
      ("queues", "the home of each queue between machines, and how many messages are lent"),
      ("requests", "numbers of requests and immediate messages to and from other machines"),
      ("wakes", "numbers of wakes that the bridge has asked of other machines, and was asked"),
      ("trouble", "what holds up the bridge, or has ended it"),
    ])

  static let right = ObjectForm(
    "right", "a right of a machine on the servers, from bridge rights",
    [
      ("action", "'publish' or 'subscribe'"), ("subject", "subjects of the right"),
      ("purpose", "what the machine can do with the right"),
    ])

  static let change = ObjectForm(
    "change", "a changed channel, from put, update and clear",
    [
      ("channel", "its name"), ("version", "number of its changes"), ("value", "its value"),
    ])

  static let setting = ObjectForm(
    "setting", "a setting or a changed setting, from defaults",
    [("suite", "its suite"), ("key", "its name"), ("value", "its value")])

  static let received = ObjectForm(
    "received", "a message, from receive",
    [
      ("delivery", "'guaranteed', 'immediate' or 'context'"), ("id", "its ID"),
      ("batchIndex", "its index in the batch"), ("from", "sender"),
      ("to", "receiver"), ("kind", "its kind"), ("headers", "its headers"),
      ("orderingKey", "its ordering key"),
      ("sent", "time of sending"), ("attempt", "number of this attempt"),
      ("redelivered", "whether the message may have been handled before"), ("value", "its value"),
      ("file", "the sender's name of the file"),
      ("path", "path of the file now"), ("size", "bytes of the file"),
    ])

  static let queued = ObjectForm(
    "queued", "an unhandled message, from queue",
    [
      ("id", "its ID"), ("from", "sender"), ("to", "receiver"),
      ("kind", "its kind"), ("headers", "its headers"), ("orderingKey", "its ordering key"),
      ("sent", "time of sending"), ("count", "number of messages"), ("size", "its size in bytes"),
      ("urgent", "whether it is urgent"),
      ("state", "'delayed', 'waiting', 'claimed', 'interrupted', 'in transit' or 'dead'"),
      ("notBefore", "until when it is delayed"),
      ("attempt", "number of the current or last attempt"),
      ("damage", "cause of the damage"), ("failedAt", "time of becoming a dead letter"),
      ("reason", "reason of becoming a dead letter"),
    ])

  static let sent = ObjectForm(
    "sent", "a sent message and its outcome, from send and queue",
    [
      ("delivery", "'guaranteed' or 'immediate'"), ("id", "its ID"),
      ("from", "sender"), ("to", "receiver"), ("kind", "its kind"), ("headers", "its headers"),
      ("count", "number of messages"), ("file", "the sender's name of the file"),
      (
        "status",
        "'delivered', 'cancelled', 'requested', 'expired', 'deadLettered', 'discarded' or 'pending'"
      ),
      ("reason", "reason of becoming a dead letter"),
    ])

  static let context = ObjectForm(
    "context", "a context set for a member, from send and queue",
    [
      ("from", "sender"), ("to", "receiver"), ("kind", "its kind"),
      ("sent", "time of sending"), ("value", "its value"), ("received", "whether it was received"),
    ])

  static let answer = ObjectForm(
    "reply", "the reply to a request, from request and reply",
    [
      ("from", "requester"), ("to", "receiver"), ("kind", "kind of the request"),
      ("headers", "headers of the request"),
      ("replied", "whether the request was not refused"), ("value", "the reply"),
      ("reason", "reason of the refusal"),
    ])

  static let member = ObjectForm(
    "member", "a member, from members and wake",
    [
      ("member", "its name"), ("incarnation", "ID of the latest join"),
      ("state", "'running', 'stopped' or 'not running'"), ("running", "whether it runs"),
      ("machine", "name of its home, if that is another machine"),
      ("stopped", "whether it is suspended, if visible"),
      ("process", "ID of the process that joined last"),
      ("program", "name of its program"), ("joined", "time of the latest join"),
      ("info", "info that it publishes"),
    ])

  static let start = ObjectForm(
    "launch command", "a member's launch command, from wake with --register, --show and --forget",
    [
      ("member", "its name"), ("program", "the program"), ("arguments", "its arguments"),
      ("environment", "its environment settings"), ("directory", "its working directory"),
    ])

  static let notice = ObjectForm(
    "notice", "a notice, from post and observe", [("notice", "its name")])

  static let removed = ObjectForm(
    "removed", "a removed name, from remove",
    [
      ("kind", Removable.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")),
      ("name", "the name"),
    ])

  static let pairing = ObjectForm(
    "pairing", "the state of a phone and its watches, from watchconnectivity",
    [
      ("active", "the active watch"),
      ("phoneApp", "whether the phone's app is installed"),
      ("watches", "app, inRange and complication of each watch, true or false"),
    ])

  static let status = ObjectForm(
    "status", "what is in a container, and who uses it, from status",
    [
      ("container", "path of the container"), ("at", "time of this statement"),
      ("channels", "number of channels"),
      (
        "queues",
        "the queues: queue, waiting, oldest (seconds), claimed, delayed, dead, workers, bytes"
      ),
      (
        "members",
        "the members: member, state, waiting, oldest, claimed, delayed, dead, bytes"
      ),
      ("locks", "the held locks, as from status --locks"),
      ("accesses", "accesses to files: state, age, process, program, files"),
      ("damaged", "number of damaged files set aside"),
      ("used", "bytes of all values and messages"), ("free", "free bytes of the file system"),
      ("problems", "subject and finding of each problem that doctor would report"),
      ("notes", "number of other findings"),
      ("unchecked", "number of values and messages that were not read"),
    ])

  static let event = ObjectForm(
    "event", "something that has happened in a container, from events",
    [
      ("kind", "kind of the subject"), ("event", "what has happened"), ("name", "its name"),
      ("at", "time of this statement"), ("value", "its value"),
      ("version", "number of its changes"), ("id", "ID of the message or access"),
      ("from", "sender or writer"), ("attempt", "number of the attempt"),
      ("process", "ID of its process"), ("detail", "further words"),
    ])

  static let lock = ObjectForm(
    "lock", "a held lock, from status --locks",
    [
      ("lock", "its name"), ("age", "seconds since it was taken"),
      ("process", "ID of its holder"), ("program", "name of the holder's program"),
      ("stopped", "whether it is suspended, if visible"),
      ("generation", "number of takeovers of the lock, plus one"),
    ])

  static let finding = ObjectForm(
    "finding", "a finding, from doctor",
    [
      ("severity", "its severity"), ("subject", "file or directory"), ("finding", "the finding"),
      ("advice", "possible remedy"), ("repairable", "whether --repair repairs it"),
      ("repaired", "whether --repair has repaired it"),
    ])
}
