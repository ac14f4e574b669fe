internal import FoundationEssentials
package import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

extension SharedContainer {
  /// Makes all repairs without loss of data; returns the repairs.
  ///
  /// Presenters of files that dead programs may have written are notified of a change.
  package func repair() throws -> [WormholeContainerStorage.Diagnosis] {
    try storage.repair(
      { room in PresenterInquiry([], but: []).tellOfBuried(in: room) },
      renewing: { slot, kept in try renewed(kept, of: slot) }, expiry: hasExpired)
  }

  /// Inspects everything except the messages, and changes nothing.
  package func inspect() throws(WormholeError) -> [WormholeContainerStorage.Diagnosis] {
    try storage.inspect(expiry: hasExpired)
  }

  /// Inspects everything except the messages, for a limited time.
  ///
  /// - Returns: the findings, and the number of values that were not checked.
  package func inspect(
    within time: Duration
  ) throws(WormholeError) -> (findings: [WormholeContainerStorage.Diagnosis], unchecked: Int) {
    try storage.inspect(within: time, expiry: hasExpired)
  }

  /// Whether readers refuse the previous value of a channel because the value has expired.
  private func hasExpired(_ path: String, _ previous: [UInt8]) -> Bool {
    guard path.begins(with: "channels/") else { return false }
    let file = try? Envelope.OpenFile(
      previous, BinaryDecoder(limits: options.limits), options.environment.sinceEpoch)
    return file?.isExpired == true
  }

  /// Returns the file of the version after a damaged value, with the content of the previous value.
  ///
  /// Other programs may know the version of the damaged value, which is not used again.
  private func renewed(_ kept: [UInt8], of slot: Slot) throws(WormholeError) -> [UInt8] {
    let isSuite = slot.name.begins(with: Container.Folder.suitePrefix)
    guard slot.folder == .channels || isSuite else { return kept }
    let operation = "repair \(slot.title)"
    let content = Slot.Content.value(kept, recovered: true)
    let writer = SlotWriter(slot, of: self, name: slot.name)
    let count = writer.countAnywhere(content)
    // The versions of a copy are those of its home, and a list of an unknown form has none.
    guard count.present != nil, count.home == nil, try slot.home() == nil else { return kept }
    let reader = SlotReader(
      limits: options.limits, name: slot.name, operation: operation,
      clock: options.environment.sinceEpoch)
    let snapshot = try reader.snapshot(of: content, as: PropertyListValue.self)
    return try writer.seal(
      snapshot?.value, count, until: snapshot?.metadata.expiresAt, operation)
  }

  /// Returns findings about the members' messages, for the maintainer of the container.
  ///
  /// Nothing is changed. Each message is read, as by its receiver. Entries that are not directories
  /// of members or guests are reported by the inspection of members.
  package func inspectMail() -> [WormholeContainerStorage.Diagnosis] {
    var findings: [WormholeContainerStorage.Diagnosis] = []
    for folder in [Container.Folder.members, .queues] {
      for name in (try? storage.names(in: folder)) ?? [] {
        guard let home = try? storage.existingMember(name, in: folder) else { continue }
        var inspection = MailInspection(home, options)
        inspection.run()
        findings += inspection.findings
      }
    }
    for name in (try? storage.names(in: .guests)) ?? [] {
      // Another inspection reports dead guests.
      guard let home = try? storage.existingMember(name, in: .guests),
        (try? home.isPresent()) == true
      else { continue }
      var inspection = MailInspection(home, options)
      inspection.look(at: .live) { try $0.inspectLive(of: Incarnation(rawValue: name)) }
      findings += inspection.findings
    }
    return findings
  }
}

/// The inspection of one member's mailbox.
private struct MailInspection {
  private let home: MemberDirectory
  private let glance: QueuedMessageReader
  private let now: Date
  private(set) var findings: [WormholeContainerStorage.Diagnosis] = []

  /// The number of findings of a kind that are reported individually.
  private static let most = 20

  init(_ home: MemberDirectory, _ options: Options) {
    self.home = home
    glance = QueuedMessageReader(home, options.limits)
    now = Date(sinceEpoch: options.environment.sinceEpoch())
  }

  mutating func run() {
    look(at: .inbox) { try $0.inspectInbox() }
    look(at: .later) { try $0.inspectLater() }
    look(at: .claimed) { try $0.inspectClaimed() }
    look(at: .dead) { try $0.inspectDead() }
    look(at: .files) { inspection in
      _ = try inspection.sort(.files) { file in
        // A second name of a message whose sender has chosen the ID.
        file == MemberDirectory.roomName || file.begins(with: MessageName.uniquePrefix)
          ? [] : MessageName.messages(ofFile: file)
      }
    }
    if home.folder == .queues {
      look(at: .workers) { try $0.inspectWorkers() }
    } else {
      inspectMembersOwn()
    }
  }

  /// The parts that a queue does not have.
  private mutating func inspectMembersOwn() {
    look(at: .receipts) { try $0.inspectReceipts() }
    look(at: .context) { _ = try $0.sort(.context) { ContextName.sender($0) } }
    look(at: .live) { inspection in
      let home = inspection.home
      let profile = try home.isPresent() ? home.readProfile().profile : nil
      try inspection.inspectLive(of: profile?.incarnation)
    }
  }

  /// Inspects a part; if the part cannot be read, the obstacle is a finding.
  mutating func look(
    at part: MemberDirectory.Part, _ body: (inout MailInspection) throws -> Void
  ) {
    let path = "\(home.path)/\(part.rawValue)"
    if let obstacle = home.container.obstacle(at: path, { try body(&self) }) {
      findings.append(obstacle)
    }
  }

  // MARK: The parts

  private mutating func inspectInbox() throws(Errno) {
    let now = now
    var (waiting, expired) = (0, 0)
    try read(in: .inbox, { MessageName($0) }) { name, header in
      if header?.hasExpired(name, by: now) == true {
        expired += name.count
      } else {
        waiting += name.count
      }
    }
    if waiting > 0 {
      let words = waiting == 1 ? "1 message waits" : "\(waiting) messages wait"
      note(.inbox, words, "list the messages with 'wormhole queue \(home.name.shellWord)'")
    }
    if expired > 0 {
      let words = expired == 1 ? "1 message has expired" : "\(expired) messages have expired"
      note(
        .inbox, words, "removed when '\(home.name)' receives, or when its queue is full")
    }
  }

  private mutating func inspectLater() throws(Errno) {
    var count = 0
    try read(in: .later, { DelayedName($0)?.name }) { name, _ in count += name.count }
    guard count > 0 else { return }
    note(
      .later, count == 1 ? "1 message is delayed" : "\(count) messages are delayed",
      "list the messages with 'wormhole queue \(home.name.shellWord)'")
  }

  private mutating func inspectClaimed() throws(Errno) {
    let claimed = try sort(.claimed) { file -> [ClaimedName]? in
      // A request for a carrier, beside its message.
      let mark = MessageName.cancellationMark
      if file.ends(with: mark), MessageName(String(file.dropLast(mark.count))) != nil { return [] }
      return ClaimedName(file).map { [$0] }
    }.flatMap(\.self)
    var damaged = 0
    for name in claimed { read(name.text, name.name, in: .claimed, &damaged) { _, _ in } }
    tellOfMore(damaged, .claimed)
    guard !claimed.isEmpty, home.folder != .queues else { return }
    let words = claimed.count == 1 ? "1 file is claimed" : "\(claimed.count) files are claimed"
    if try home.isPresent() {
      note(.claimed, words, nil)
    } else {
      note(
        .claimed, "\(words) by a member that does not run",
        "messages that were not handled are redelivered when '\(home.name)' joins")
    }
  }

  private mutating func inspectWorkers() throws(Errno) {
    _ = try sort(.workers) { MemberDirectory.WorkerName($0) }
    var count = 0
    for worker in try home.workers() {
      try worker.list(.claimed) { if ClaimedName(String(cString: $0)) != nil { count += 1 } }
    }
    guard count > 0 else { return }
    note(
      .workers, count == 1 ? "1 message is being handled" : "\(count) messages are being handled",
      nil)
  }

  private mutating func inspectDead() throws(Errno) {
    let letters = try sort(.dead) { file -> [MessageName]? in
      // A reason, which may remain after its message was retried or discarded, is no letter.
      let mark = MessageName.reasonMark
      if file.ends(with: mark), MessageName(String(file.dropLast(mark.count))) != nil { return [] }
      return MessageName(file).map { [$0] }
    }.flatMap(\.self).sorted()
    for name in letters.prefix(Self.most) {
      // A message may have left since the listing.
      guard try home.status(of: name.text, in: .dead) != nil else { continue }
      let why = DeathReason.read(name, in: home)
      let words = why?.reason ?? "the reason is no longer stored"
      problem(
        "\(home.path)/\(MemberDirectory.Part.dead.rawValue)",
        "message '\(name.id)' is a dead letter: \(words)",
        "list the dead letters with 'wormhole queue \(home.name.shellWord) --dead'; retry or "
          + "discard this letter with '--retry \(name.id.shellWord)' or "
          + "'--discard \(name.id.shellWord)'"
      )
    }
    tellOfMore(letters.count, .dead)
  }

  private mutating func inspectReceipts() throws(Errno) {
    let receipts = try sort(.receipts) { ReceiptName($0) }
    guard !receipts.isEmpty, try !home.isPresent() else { return }
    let words = receipts.count == 1 ? "1 receipt waits" : "\(receipts.count) receipts wait"
    note(
      .receipts, "\(words) to be read",
      "'\(home.name)' receives the outcomes after its next join; list the outcomes with "
        + "'wormhole queue \(home.name.shellWord) --outcomes', or remove all outcomes with "
        + "'--remove-outcomes'")
  }

  /// - Parameter incarnation: the running incarnation.
  mutating func inspectLive(of incarnation: Incarnation?) throws(Errno) {
    let (home, part) = (home, MemberDirectory.Part.live)
    let folders = try sort(part) { name -> Incarnation? in
      let kind = try? home.part(part).descriptor.status(of: name).kind
      return kind == .directory ? Incarnation(rawValue: name) : nil
    }
    for folder in folders {
      guard let open = try home.live(folder) else { continue }
      let files = try open.descriptor.names().sorted()
      for file in files where LiveName(file) == nil {
        foreign("\(part.rawValue)/\(folder)/\(file)")
      }
      let count = files.filter { LiveName($0) != nil }.count
      // Every killed process leaves an empty folder.
      guard count > 0 else { continue }
      let words = count == 1 ? "1 file" : "\(count) files"
      if folder != incarnation {
        note(
          part, "an ended process has left '\(folder)' with \(words)",
          "no process reads the files; the next join as '\(home.name)' removes them")
      } else {
        note(
          part, "\(words) of immediate messages to be read",
          "if the number stays, check whether the member is suspended")
      }
    }
  }

  // MARK: Files

  /// Returns the names in the library's form, in order of text; all remaining names are foreign.
  private mutating func sort<Name>(
    _ part: MemberDirectory.Part, _ ours: (String) -> Name?
  ) throws(Errno) -> [Name] {
    var names: [Name] = []
    try forEach(in: part, ours) { _, name in names.append(name) }
    return names
  }

  /// Calls the body with each name in the library's form, in order of text; all remaining names are
  /// foreign.
  private mutating func forEach<Name>(
    in part: MemberDirectory.Part, _ ours: (String) -> Name?,
    _ body: (inout MailInspection, Name) -> Void
  ) throws(Errno) {
    // The inspection of members reports a file of another kind in its place.
    let status = try? home.home.descriptor.status(of: part.rawValue)
    guard status?.kind == .directory else { return }
    var files = FileNameList()
    try home.list(part) { files.add($0) }
    files.sort()
    files.forEach { file in
      let file = String(cString: file)
      if let name = ours(file) {
        body(&self, name)
      } else {
        foreign("\(part.rawValue)/\(file)")
      }
      return true
    }
  }

  private mutating func foreign(_ file: String) {
    findings.append(
      Diagnosis(
        .note, "\(home.path)/\(file)",
        "a foreign file: the library did not make the file, and never changes it",
        advice: "move the file elsewhere if no program uses it"))
  }

  /// Reads each message of a part when its turn comes.
  ///
  /// - Parameter body: receives each message; without the header, if the message cannot be read.
  private mutating func read(
    in part: MemberDirectory.Part, _ ours: (String) -> MessageName?,
    _ body: (MessageName, MessageFile.Header?) -> Void
  ) throws(Errno) {
    var damaged = 0
    try forEach(in: part, ours) { $0.read($1.text, $1, in: part, &damaged, body) }
    tellOfMore(damaged, part)
  }

  private mutating func read(
    _ file: String, _ name: MessageName, in part: MemberDirectory.Part, _ damaged: inout Int,
    _ body: (MessageName, MessageFile.Header?) -> Void
  ) {
    do throws(WormholeError) {
      // A message that has left the part since the listing does not count.
      if let header = try glance.header(file, part) { body(name, header) }
    } catch {
      body(name, nil)
      damaged += 1
      guard damaged <= Self.most else { return }
      problem(
        "\(home.path)/\(part.rawValue)/\(file)",
        "message '\(name.id)' cannot be read: \(error.reason)",
        error.hint ?? "'\(home.name)' moves the message to the dead letters at the next read")
    }
  }

  private mutating func tellOfMore(_ count: Int, _ part: MemberDirectory.Part) {
    guard count > Self.most else { return }
    problem(
      "\(home.path)/\(part.rawValue)", "\(count - Self.most) more like these",
      "list the messages with 'wormhole queue \(home.name.shellWord)'")
  }

  private mutating func note(_ part: MemberDirectory.Part, _ what: String, _ advice: String?) {
    findings.append(Diagnosis(.note, "\(home.path)/\(part.rawValue)", what, advice: advice))
  }

  private mutating func problem(_ subject: String, _ what: String, _ advice: String) {
    findings.append(Diagnosis(.problem, subject, what, advice: advice))
  }

  private typealias Diagnosis = WormholeContainerStorage.Diagnosis
}

extension SharedContainer {
  /// Frees the room of expired values, which no reader finds any more.
  ///
  /// - Parameter isLooking: whether to report only, without clearing.
  /// - Returns: the cleared channels, or the channels to clear, as findings of an inspection.
  package func sweepExpired(isLooking: Bool) -> [WormholeContainerStorage.Diagnosis] {
    let now = Date(sinceEpoch: options.environment.sinceEpoch())
    // The inspection reports channels that cannot be listed or read.
    return ((try? expiredChannels()) ?? []).compactMap { name, _ in
      let path = "channels/" + ((try? Container.escape(name)) ?? name)
      // A clear that fails is in the log, and the next inspection reports the channel again.
      var isExpired = isLooking
      if !isLooking {
        storage.repair(path) { isExpired = try clearExpired(name, by: now) }
      }
      guard isExpired else { return nil }
      return WormholeContainerStorage.Diagnosis(
        .note, path, "the value has expired, and is still in its file",
        advice: "the next change replaces the value, and '--repair' clears the channel",
        isRepairable: true)
    }
  }
}
