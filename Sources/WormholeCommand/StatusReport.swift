import FoundationEssentials
import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The content and the users of a container, at one moment.
///
/// The numbers are counted as the directories are listed: nothing is kept per channel or message.
struct StatusReport {
  let path: String
  let at: Date
  let channels: Container.Usage
  private(set) var queues: [MailboxSurvey] = []
  private(set) var members: [MailboxSurvey] = []
  let locks: [HeldLock]
  let accesses: [AccessReport]
  let damaged: Int
  let free: Int?
  /// The problems that `doctor` reports, and dead letters.
  private(set) var problems: [Diagnosis] = []
  private(set) var notes = 0
  /// The values and messages that were not read, because that would have taken long.
  private(set) var unchecked = 0

  /// For how long values are read in search of damage.
  private static let checkingTime = Duration.milliseconds(200)
  /// The number of messages up to which all are read.
  private static let readMessages = 200
  /// The number of problems that are listed.
  private static let mostProblems = 20

  init(_ container: SharedContainer) throws {
    let storage = container.storage
    path = storage.path
    at = Date()
    channels = try storage.channelUsage()
    locks = try storage.heldLocks()
    accesses = try storage.accesses().filter(\.isAlive)
    damaged = try storage.damagedUsage().count
    free = storage.freeBytes
    var (queues, members): ([MailboxSurvey], [MailboxSurvey]) = ([], [])
    try container.forEachMailbox { if $0.isQueue { queues.append($0) } else { members.append($0) } }
    (self.queues, self.members) = (queues, members)
    try check(container)
  }

  private mutating func check(_ container: SharedContainer) throws {
    var (findings, unchecked) = try container.inspect(within: Self.checkingTime)
    let messages = (queues + members).reduce(0) { $0 + $1.waiting + $1.claimed + $1.delayed }
    if messages + deadLetters <= Self.readMessages {
      findings += container.inspectMail() + container.sweepFiles(isLooking: true)
    } else {
      unchecked += messages
      for mailbox in queues + members where mailbox.dead > 0 {
        findings.append(
          Diagnosis(
            .problem, "\(mailbox.isQueue ? "queues" : "members")/\(mailbox.name)/dead",
            mailbox.dead == 1 ? "1 dead letter" : "\(mailbox.dead) dead letters"))
      }
    }
    self.unchecked = unchecked
    notes = findings.count { $0.severity == .note }
    problems = findings.filter { $0.severity == .problem }
  }

  private var deadLetters: Int { (queues + members).reduce(0) { $0 + $1.dead } }
  /// The bytes of all values and messages.
  private var used: Int { (queues + members).reduce(channels.bytes) { $0.addingClamped($1.bytes) } }

  // MARK: The forms

  /// The lines without a terminal: the section, and its fields with tabs between.
  func bareLines() throws -> [String] {
    var rows = [
      ["container", try path.inOneLine()], ["channels", "\(channels.count)", "\(channels.bytes)"],
    ]
    rows += try queues.map { queue in
      try ["queue", queue.name.inOneLine()] + numbers(queue)
        + ["\(queue.workers)", "\(queue.bytes)"]
    }
    rows += try members.map { member in
      try ["member", member.name.inOneLine(), member.state] + numbers(member) + ["\(member.bytes)"]
    }
    rows += try locks.map { try ["lock"] + $0.fields }
    rows += try accesses.map { access in
      let who = access.holder.map { "\($0)" } ?? "-"
      return [
        "access", access.state, who, access.age.inSeconds, try access.description.inOneLine(),
      ]
    }
    rows += [
      ["damaged", "\(damaged)"], ["space", "\(used)", free.map(String.init) ?? "-"],
      ["doctor", "\(problems.count)", "\(notes)", "\(unchecked)"],
    ]
    rows += try problems.prefix(Self.mostProblems).map {
      ["problem", try $0.subject.inOneLine(), try $0.what.inOneLine()]
    }
    return rows.map { $0.joined(separator: "\t") }
  }

  private func numbers(_ mailbox: MailboxSurvey) -> [String] {
    [
      "\(mailbox.waiting)", age(of: mailbox)?.inSeconds ?? "-", "\(mailbox.claimed)",
      "\(mailbox.delayed)", "\(mailbox.dead)",
    ]
  }

  private func age(of mailbox: MailboxSurvey) -> Duration? {
    mailbox.oldest.map { .milliseconds(max(0, Int64(clamping: at.timeIntervalSince($0) * 1000))) }
  }

  /// The lines in a terminal.
  func lines(_ style: TerminalStyle) throws -> [String] {
    let space = free.map { ", \($0.inUnits) free" } ?? ""
    var lines = [
      style.paint(try path.inOneLine(), .title) + "  \(DateText.format(at, fraction: false) ?? "")",
      "\(channels.count) channels, \(used.inUnits) used\(space)",
    ]
    func add(_ table: [String]) { if !table.isEmpty { lines += [""] + table } }
    let counts = ["WAITING", "OLDEST", "CLAIMED", "DELAYED", "DEAD"]
    add(
      Listing.lines(
        ["QUEUE"] + counts + ["WORKERS", "BYTES"],
        try queues.map { queue in
          try [.init(queue.name.inOneLine())] + cells(queue)
            + [
              .init("\(queue.workers)", queue.workers == 0 && queue.waiting > 0 ? .bad : .plain),
              .init(queue.bytes.inUnits),
            ]
        }, numbers: Set(1...7), style))
    add(
      Listing.lines(
        ["MEMBER", "STATE"] + counts + ["BYTES", "PROGRAM"],
        try members.map { member in
          let who = member.profile.flatMap { $0.isRunning && $0.machine == nil ? $0 : nil }
          return try [.init(member.name.inOneLine()), .state(member.state)] + cells(member)
            + [
              .init(member.bytes.inUnits),
              .init(who.map { "\($0.program) (\($0.processID))" } ?? ""),
            ]
        }, numbers: Set(2...7), style))
    add(
      Listing.lines(
        HeldLock.titles, try locks.map { try $0.cells }, style))
    add(
      Listing.lines(
        ["ACCESS", "FOR", "PROCESS", "FILES"],
        try accesses.map { access in
          [
            .init(access.state), .init(access.age.inUnits),
            .init(access.holder.map { "\($0)" } ?? "unknown"),
            .init(try access.description.inOneLine()),
          ]
        }, style))
    lines += [""] + doctorLines(style)
    return lines
  }

  private func doctorLines(_ style: TerminalStyle) -> [String] {
    var words = problems.isEmpty ? "no problem" : "\(problems.count) problems"
    if problems.count == 1 { words = "1 problem" }
    words += notes == 1 ? ", 1 note" : ", \(notes) notes"
    if unchecked > 0 { words += "; \(unchecked) values and messages were not read" }
    if damaged > 0 { words += "; \(damaged) damaged files are set aside" }
    let shown = problems.prefix(Self.mostProblems).map { problem in
      style.paint("problem", .bad) + "  \(problem.subject): \(problem.what)".withoutControls
    }
    return ["doctor: " + style.paint(words, problems.isEmpty ? .good : .bad)] + shown
  }

  private func cells(_ mailbox: MailboxSurvey) -> [Listing.Cell] {
    [
      .init("\(mailbox.waiting)"), .init(age(of: mailbox)?.inUnits ?? "-"),
      .init("\(mailbox.claimed)"), .init("\(mailbox.delayed)"),
      .init("\(mailbox.dead)", mailbox.dead > 0 ? .bad : .plain),
    ]
  }

  var object: [String: PropertyListValue?] {
    [
      "container": .string(path), "at": DateText.format(at).map { .string($0) },
      "channels": .integer(Int64(channels.count)),
      "queues": .array(queues.map { object(of: $0, "queue", ["workers": .of($0.workers)]) }),
      "members": .array(
        members.map { object(of: $0, "member", ["state": .string($0.state)]) }),
      "locks": .array(locks.map { .dictionary($0.object.compactMapValues(\.self)) }),
      "accesses": .array(accesses.map(object)),
      "damaged": .of(damaged), "used": .of(used), "free": free.map { .of($0) },
      "problems": .array(
        problems.map {
          .dictionary(["subject": .string($0.subject), "finding": .string($0.what)])
        }),
      "notes": .of(notes), "unchecked": .of(unchecked),
    ]
  }

  private func object(
    of mailbox: MailboxSurvey, _ kind: String, _ more: [String: PropertyListValue]
  ) -> PropertyListValue {
    var object: [String: PropertyListValue] = [
      kind: .string(mailbox.name), "waiting": .of(mailbox.waiting),
      "claimed": .of(mailbox.claimed), "delayed": .of(mailbox.delayed), "dead": .of(mailbox.dead),
      "bytes": .of(mailbox.bytes),
    ]
    object["oldest"] = age(of: mailbox).map { .real($0 / .seconds(1)) }
    return .dictionary(object.merging(more) { $1 })
  }

  private func object(of access: AccessReport) -> PropertyListValue {
    var object: [String: PropertyListValue] = [
      "state": .string(access.state), "age": .real(access.age / .seconds(1)),
      "files": .array(
        access.parts.map {
          .dictionary(["path": .string($0.path), "writes": .boolean($0.writes)])
        }),
    ]
    object["process"] = access.holder.map { .integer(Int64($0.process)) }
    object["program"] = access.holder.map { .string($0.program) }
    return .dictionary(object)
  }
}

extension MailboxSurvey {
  fileprivate var state: String { profile?.state ?? "not running" }
}

extension PropertyListValue {
  fileprivate static func of(_ number: Int) -> PropertyListValue { .integer(Int64(number)) }
}

extension HeldLock {
  static let titles = ["LOCK", "FOR", "HOLDER"]

  /// The fields of a line: the name, the seconds since the lock was taken, and the holder.
  var fields: [String] {
    get throws {
      [try name.inOneLine(), age?.inSeconds ?? "-", holder.map { "\($0)" } ?? "-"]
    }
  }

  var cells: [Listing.Cell] {
    get throws {
      [
        .init(try name.inOneLine()), .init(age?.inUnits ?? "-"),
        .init(holder.map { "\($0)" } ?? "unknown", holder?.state == .stopped ? .bad : .plain),
      ]
    }
  }

  var object: [String: PropertyListValue?] {
    [
      "lock": .string(name), "age": age.map { .real($0 / .seconds(1)) },
      "process": holder.map { .integer(Int64($0.process)) },
      "program": holder.map { .string($0.program) },
      "stopped": holder.flatMap { $0.state == .unknown ? nil : .boolean($0.state == .stopped) },
      "generation": .integer(Int64(generation)),
    ]
  }
}
