/// Which clock counts where.
///
/// A file that is not named here takes the clock of messages, which a test can move, or the inputs
/// of its container. With two clocks, a deadline is compared with a time that it was not made from.
extension Rule {
  static let clocks = Rule("clocks", in: \.code) { line, file in
    guard file.isSwift, file.isSource,
      ["Wormhole", "WormholeContainerStorage"].contains(file.room)
    else { return nil }
    if readsMonotonicClock(line), !isNamed(file, in: monotonicClock) {
      return "reads the machine's clock: take the time of the options, or name the file and reason"
    }
    if readsWallClock(line), !isNamed(file, in: wallClock) {
      return "reads the machine's clock: take it from the environment, or name the file and reason"
    }
    return nil
  }

  /// The folders and files below `Sources` that read the monotonic clock, and what they measure.
  static let monotonicClock = [
    "WormholeContainerStorage/": "leases, ages and waits of locks and watches: the only clock",
    "Wormhole/Base/CallQueue.swift": "the pause before a call on a queue",
    "Wormhole/Base/MailTime.swift": "the clock of messages, unless a test has one",
    "Wormhole/Base/MemberDirectoryCache.swift": "the age of a check of a directory's name",
    "Wormhole/Channels/Channel+Home.swift": "the timeout of a change on another machine",
    "Wormhole/Coordination/": "accesses and presenters, for which other processes wait",
    "Wormhole/Format/BatchProgress.swift": "the pause after a file could not grow",
    "Wormhole/Members/": "the pauses after a presence was released",
    "Wormhole/Queues/FollowingWorker.swift": "the wait of a thread for a queue that was moved",
    "Wormhole/Queues/QueueWorker.swift": "the time that a listing takes",
    "Wormhole/Receiving/InboxWatch.swift": "the share of time that listings take",
    "Wormhole/Receiving/Mailbox.swift": "the time that a listing takes",
    "Wormhole/Requests/LiveFolders.swift": "the age of a check of a requester",
    "Wormhole/Requests/LiveMailbox.swift": "the time that a program needs to register its closures",
    "Wormhole/Sending/Quotas.swift": "the wait of a thread between two counts",
    "Wormhole/Tasks/": "waits of threads, and their idle time",
    "Wormhole/Top/MailboxFeed.swift": "the delay of the kernel's notices after a listing",
    "Wormhole/Top/SharedContainer+Async.swift": "the wait of a thread for tasks that end",
    "Wormhole/Top/SharedContainer+Joining.swift": "the wait for the end of a process",
    "Wormhole/Top/SharedContainer+Standby.swift": "the wait of a thread for a name",
    "Wormhole/Waking/": "the start of a process",
    "Wormhole/Watching/Listener.swift": "the pause before a name is read again",
    "Wormhole/Watching/SharedContainer.swift": "the timeout of a lock",
  ]

  /// As ``monotonicClock``, for the clocks that count from 1970 and from the start of the machine.
  static let wallClock = [
    "WormholeContainerStorage/Base/Environment.swift": "the input itself",
    "Wormhole/Base/MailTime.swift": "the clock of messages, unless a test has one",
    "Wormhole/Format/MemberDirectory+Messages.swift": "the file system's own change times",
    "Wormhole/Receiving/MadeMessage.swift": "messages without a container",
    "Wormhole/Watching/Snapshot.swift": "the age of metadata, which have no container",
  ]

  private static func isNamed(_ file: SourceFile, in places: [String: String]) -> Bool {
    places.keys.contains { file.path.hasPrefix("Sources/" + $0) }
  }

  /// Whether a line contains `Instant.now`, or `.now` without a word before the dot.
  static func readsMonotonicClock(_ line: String) -> Bool {
    let parts = line.split(separator: ".now", omittingEmptySubsequences: false)
    return zip(parts, parts.dropFirst()).contains { before, after in
      if let next = after.first, isPartOfWord(next) { return false }
      guard let last = before.last, isPartOfWord(last) || ")]?!".contains(last) else { return true }
      return before.hasSuffix("Instant")
    }
  }

  private static func isPartOfWord(_ character: Character) -> Bool {
    character.isLetter || character.isNumber || character == "_"
  }

  static func readsWallClock(_ line: String) -> Bool {
    let readings = [
      "Clocks.sinceEpoch", "Clocks.sinceBoot", "Clocks.bootIdentifier", "Date()", "Date.now",
    ]
    return readings.contains(where: line.contains)
  }
}
