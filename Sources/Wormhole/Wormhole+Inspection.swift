package import SharedContainer
internal import Syscalls

extension Wormhole {
  /// Does what can be done without losing anything; answers what it has repaired.
  ///
  /// Those who present what dead programs may have written are told of a change.
  package func repair() throws -> [SharedContainer.Finding] {
    try container.repair { room in PresenterRound([], but: []).tellOfBuried(in: room) }
  }

  /// What somebody who looks after the container should know of its members' messages.
  ///
  /// Nothing is changed. Each message is read, as its receiver would.
  /// Of what is no member's directory, or no guest's, those tell who look at members.
  package func inspectMail() -> [SharedContainer.Finding] {
    var findings: [SharedContainer.Finding] = []
    for name in (try? container.names(in: .members)) ?? [] {
      guard let home = try? container.existingMember(name) else { continue }
      var inspection = MailInspection(home, options)
      inspection.run()
      findings += inspection.findings
    }
    for name in (try? container.names(in: .guests)) ?? [] {
      // Of a dead one others tell.
      guard let home = try? container.existingMember(name, in: .guests),
        (try? home.isPresent()) == true
      else { continue }
      var inspection = MailInspection(home, options)
      inspection.look(at: .live) { try $0.inspectLive(of: Incarnation(rawValue: name)) }
      findings += inspection.findings
    }
    return findings
  }
}

/// A look into the mailbox of one member.
private struct MailInspection {
  private let home: MemberDirectory
  private let glance: QueuedMessageReader
  private(set) var findings: [SharedContainer.Finding] = []

  /// How many of a kind are told one by one.
  private static let most = 20

  init(_ home: MemberDirectory, _ options: Wormhole.Options) {
    self.home = home
    glance = QueuedMessageReader(home, options.limits)
  }

  mutating func run() {
    look(at: .inbox) { try $0.inspectInbox() }
    look(at: .claimed) { try $0.inspectClaimed() }
    look(at: .dead) { try $0.inspectDead() }
    look(at: .receipts) { try $0.inspectReceipts() }
    look(at: .context) { _ = try $0.sort(.context) { ContextName.sender($0) } }
    look(at: .files) { inspection in
      _ = try inspection.sort(.files) { file in
        file == MemberDirectory.roomName ? [] : MessageName.messages(ofFile: file)
      }
    }
    look(at: .live) { inspection in
      let home = inspection.home
      let profile = try home.isPresent() ? home.readProfile().profile : nil
      try inspection.inspectLive(of: profile?.incarnation)
    }
  }

  /// Looks at a part; where it cannot, that is a finding.
  mutating func look(
    at part: MemberDirectory.Part, _ body: (inout MailInspection) throws -> Void
  ) {
    let path = "\(home.path)/\(part.rawValue)"
    if let obstacle = Finding.obstacle(at: path, { try body(&self) }) { findings.append(obstacle) }
  }

  // MARK: The parts

  private mutating func inspectInbox() throws(Errno) {
    let waiting = try sort(.inbox) { MessageName($0) }
    read(waiting.map { ($0.text, $0) }, in: .inbox)
    guard !waiting.isEmpty else { return }
    let count = waiting.reduce(0) { $0 + $1.count }
    let words = count == 1 ? "1 message waits" : "\(count) messages wait"
    note(.inbox, words, "see 'wormhole queue \(home.name)'")
  }

  private mutating func inspectClaimed() throws(Errno) {
    let claimed = try sort(.claimed) { ClaimedName($0) }
    read(claimed.map { ($0.text, $0.name) }, in: .claimed)
    guard !claimed.isEmpty else { return }
    let words = claimed.count == 1 ? "1 file is in hand" : "\(claimed.count) files are in hand"
    if try home.isPresent() {
      note(.claimed, words, nil)
    } else {
      note(
        .claimed, "\(words) of a member that does not run",
        "what was not handled comes again when '\(home.name)' joins")
    }
  }

  private mutating func inspectDead() throws(Errno) {
    let reason = ",reason"
    let dead = try sort(.dead) { file in
      MessageName(file.ends(with: reason) ? String(file.dropLast(reason.count)) : file)
    }
    let letters = Set(dead).sorted()
    for name in letters.prefix(Self.most) {
      // A reason without its message was left by somebody who discarded that.
      guard try home.status(of: name.text, in: .dead) != nil else { continue }
      let why = DeathReason.read(name, in: home)
      let words = why?.reason ?? "the reason is no longer kept"
      problem(
        "\(home.path)/\(MemberDirectory.Part.dead.rawValue)",
        "message '\(name.id)' was given up: \(words)",
        "look with 'wormhole queue \(home.name) --dead'; then '--retry \(name.id)' or "
          + "'--discard \(name.id)'")
    }
    tellOfMore(letters.count, .dead)
  }

  private mutating func inspectReceipts() throws(Errno) {
    let receipts = try sort(.receipts) { ReceiptName($0) }
    guard !receipts.isEmpty, try !home.isPresent() else { return }
    let words = receipts.count == 1 ? "1 receipt waits" : "\(receipts.count) receipts wait"
    note(
      .receipts, "\(words) to be read",
      "'\(home.name)' is told when it joins and asks how its messages ended; look with "
        + "'wormhole queue \(home.name) --outcomes', and remove them with '--clear'")
  }

  /// - Parameter incarnation: the one that lives.
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
      // An empty one is what each process leaves that was killed.
      guard count > 0 else { continue }
      let words = count == 1 ? "1 file" : "\(count) files"
      if folder != incarnation {
        note(
          part, "a process that has ended has left '\(folder)' with \(words)",
          "nobody reads it; whoever joins as '\(home.name)' next removes it")
      } else {
        note(
          part, "\(words) to be read at once", "if it stays so, look whether it is stopped")
      }
    }
  }

  // MARK: Files

  /// The names that are in the form of ours, in order of text; the others are foreign.
  private mutating func sort<Name>(
    _ part: MemberDirectory.Part, _ ours: (String) -> Name?
  ) throws(Errno) -> [Name] {
    // Something else in its place is told by those who look at members.
    let status = try? home.home.descriptor.status(of: part.rawValue)
    guard status?.kind == .directory else { return [] }
    var files: [String] = []
    try home.list(part) { files.append(String(cString: $0)) }
    var names: [Name] = []
    for file in files.sorted() {
      if let name = ours(file) {
        names.append(name)
      } else {
        foreign("\(part.rawValue)/\(file)")
      }
    }
    return names
  }

  private mutating func foreign(_ file: String) {
    findings.append(
      Finding(
        .note, "\(home.path)/\(file)",
        "a foreign file: nothing here made it, and it is left alone",
        advice: "move it elsewhere if it is not wanted"))
  }

  private mutating func read(
    _ files: [(file: String, name: MessageName)], in part: MemberDirectory.Part
  ) {
    var damaged = 0
    for (file, name) in files {
      do throws(WormholeError) {
        _ = try glance.header(file, part)
      } catch {
        damaged += 1
        guard damaged <= Self.most else { continue }
        problem(
          "\(home.path)/\(part.rawValue)/\(file)",
          "message '\(name.id)' cannot be read: \(error.reason)",
          error.hint ?? "'\(home.name)' puts it to its dead letters when it meets it")
      }
    }
    tellOfMore(damaged, part)
  }

  private mutating func tellOfMore(_ count: Int, _ part: MemberDirectory.Part) {
    guard count > Self.most else { return }
    problem(
      "\(home.path)/\(part.rawValue)", "\(count - Self.most) more like these",
      "see 'wormhole queue \(home.name)'")
  }

  private mutating func note(_ part: MemberDirectory.Part, _ what: String, _ advice: String?) {
    findings.append(Finding(.note, "\(home.path)/\(part.rawValue)", what, advice: advice))
  }

  private mutating func problem(_ subject: String, _ what: String, _ advice: String) {
    findings.append(Finding(.problem, subject, what, advice: advice))
  }

  private typealias Finding = SharedContainer.Finding
}
