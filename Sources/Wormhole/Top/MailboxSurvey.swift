package import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The messages of a member or a queue, as numbers.
///
/// The names in the directories are counted as they are listed: no message is read except the
/// oldest, and nothing is kept per message.
package struct MailboxSurvey: Sendable {
  package let name: String
  package let isQueue: Bool
  /// The member; nil for a queue, and for a member whose profile is missing or unreadable.
  package let profile: Profile?
  /// The messages that wait for an attempt, expired ones included.
  package private(set) var waiting = 0
  package private(set) var delayed = 0
  package private(set) var claimed = 0
  /// The dead letters.
  package private(set) var dead = 0
  /// The bytes of the waiting, claimed, delayed and dead messages and of their files.
  package private(set) var bytes = 0
  /// When the oldest waiting message was sent, by its sender's clock.
  package private(set) var oldest: Date?
  /// The living workers of a queue.
  package private(set) var workers = 0

  /// - Parameter folder: `members` or `queues`.
  init(
    _ home: MemberDirectory, _ options: Options, _ profile: Profile?
  ) throws(WormholeError) {
    (name, isQueue, self.profile) = (home.name, home.folder == .queues, profile)
    var (waiting, delayed, dead, bytes) = (0, 0, 0, 0)
    var first: WaitingFile?
    func count(_ file: WaitingFile) {
      waiting += file.name.count
      // Urgent messages sort first: the oldest has the lowest stamp.
      if first.map({ file.name.stamp < $0.name.stamp }) ?? true { first = file }
    }
    do throws(Errno) {
      try Self.read(.inbox, of: home, &bytes) { text in
        if let name = MessageName(text) { count(WaitingFile(name)) }
      }
      try Self.read(.later, of: home, &bytes) { text in
        if let name = DelayedName(text) { delayed += name.name.count }
      }
      try Self.read(.dead, of: home, &bytes) { text in
        if let name = MessageName(text) { dead += name.count }
      }
      try Self.read(.files, of: home, &bytes) { _ in }
      for holder in try home.workers() + [home] {
        var claimed = 0
        try Self.read(.claimed, of: holder, &bytes) { text in
          guard let claim = ClaimedName(String(cString: text)) else { return }
          if let file = WaitingFile(claim, in: holder) {
            count(file)
          } else {
            claimed += claim.name.count
          }
        }
        self.claimed += claimed
        if holder !== home, try holder.isPresent() { workers += 1 }
      }
    } catch {
      throw WormholeError(error, "count the messages of", home.name, at: home)
    }
    (self.waiting, self.delayed, self.dead, self.bytes) = (waiting, delayed, dead, bytes)
    guard let first else { return }
    oldest = try? QueuedMessageReader(home, options.limits).header(first.text, first.part)?.sent
  }

  /// Passes the names in a part to the body, and adds the bytes of the files.
  ///
  /// A file with a hole may be as large as any file can be. Beside the files of messages are the
  /// record of the inbox's size, and the second names of messages, which are counted elsewhere.
  private static func read(
    _ part: MemberDirectory.Part, of home: MemberDirectory, _ bytes: inout Int,
    _ body: (UnsafePointer<CChar>) -> Void
  ) throws(Errno) {
    guard let directory = try home.existing(part) else { return }
    try home.list(part) { name in
      body(name)
      guard part != .files || MessageName.messages(ofFile: String(cString: name)) != nil else {
        return
      }
      bytes = bytes.addingClamped((try? directory.descriptor.status(of: name).size) ?? 0)
    }
  }
}

extension SharedContainer {
  /// Calls the body with the numbers of each member and each queue, in the order of their names.
  package func forEachMailbox(
    _ body: (MailboxSurvey) throws -> Void
  ) throws {
    for folder in [Container.Folder.queues, .members] {
      for name in try storage.names(in: folder) {
        let profile = folder == .members ? try FoundMember(name, in: storage).profile : nil
        // The directory may have been removed in the meantime.
        guard let home = try storage.existingMember(name, in: folder) else { continue }
        try body(MailboxSurvey(home, options, profile))
      }
    }
  }
}
