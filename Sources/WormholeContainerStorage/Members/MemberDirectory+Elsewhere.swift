package import FoundationEssentials
internal import WormholePropertyLists
package import WormholeSyscalls

/// The other machine that is the home of a member.
///
/// On this machine the member's directory is a proxy: whoever carries messages between the machines
/// takes the messages from its inbox. `elsewhere.plist` states this, and decides by its existence
/// alone: no file that cannot be read lets a local program take the name.
package struct Elsewhere: Hashable, Sendable {
  /// The machine; nil if the file cannot be read.
  package let machine: String?
  /// Since when the machine is the member's home, by the carrier's clock.
  package let since: Date?
  /// How often the home of a queue has moved.
  package var term = 0
  /// The machines that were the home of a queue before.
  package var before: [String] = []
  /// Whether this machine's workers may still have messages of the queue, from the time when they
  /// worked as those of the home.
  package var isSettling = false

  /// The largest file that is read.
  static let largestFile = 4096
  /// Messages to an earlier home have ended long before so many moves.
  package static let mostBefore = 16
  /// The longest name of a former home that is kept: all former homes fit into the file.
  private static let longestFormer = 64
  /// The greatest term: no home moves as often, and a greater one is a fault or an attack.
  package static let lastTerm = 1 << 40

  /// A term that was read; nil for a number that is none.
  ///
  /// A home with the greatest number of all could never move again.
  package static func validTerm(_ number: Int) -> Int? {
    (0...lastTerm).contains(number) ? number : nil
  }

  /// The former homes of two lists, with those of the second one last.
  package static func joined(_ earlier: [String], _ later: [String]) -> [String] {
    let all = earlier.filter { !later.contains($0) } + later
    return Array(all.filter { $0.utf8.count <= longestFormer }.suffix(mostBefore))
  }

  package init(machine: String, since: Date) {
    self.machine = machine
    self.since = since
  }

  fileprivate init() { (machine, since) = (nil, nil) }

  private enum Key {
    static let (machine, since, term) = ("machine", "since", "term")
    static let (before, settling) = ("before", "settling")
  }

  fileprivate init?(_ bytes: [UInt8]) {
    guard let list = try? BinaryPropertyList.decode(bytes),
      let machine = list[Key.machine]?.stringValue, !machine.isEmpty
    else { return nil }
    self.machine = machine.harmless
    since = list[Key.since]?.dateValue
    term = list[Key.term]?.intValue.flatMap(Self.validTerm) ?? 0
    before = (list[Key.before]?.arrayValue ?? []).compactMap(\.stringValue)
    isSettling = list[Key.settling]?.boolValue ?? false
  }

  package func encoded() throws -> [UInt8] {
    var entries: [String: PropertyListValue] = [:]
    entries[Key.machine] = machine.map { .string($0) }
    entries[Key.since] = since.map { .date($0) }
    if term > 0 { entries[Key.term] = .integer(Int64(term)) }
    if !before.isEmpty { entries[Key.before] = .array(before.map { .string($0) }) }
    if isSettling { entries[Key.settling] = true }
    // A larger file would not be read, and would name no home.
    return try entries.encoded(atMost: Self.largestFile)
  }

  /// The reason for refusing what only the home of the member can do.
  package var reason: String {
    machine.map { "its home is another machine, '\($0)'" }
      ?? "its home is another machine, which '\(MemberDirectory.elsewhereName)' does not name"
  }
}

extension MemberDirectory {
  package static let elsewhereName = "elsewhere.plist"

  /// The machine that is the member's home; nil for a member of this machine.
  package var elsewhere: Elsewhere? {
    get throws(Errno) {
      let file = try container.reader.readUsable(
        Self.elsewhereName, in: home.descriptor, atMost: Elsewhere.largestFile)
      switch file {
      case .missing?: return nil
      case .damaged?, nil: return Elsewhere()
      case .sound(let bytes, _)?: return Elsewhere(bytes) ?? Elsewhere()
      }
    }
  }

  /// States durably that the member's home is another machine.
  ///
  /// Only the holder of the presence may call this: a joining process looks for the file under the
  /// presence.
  package func write(_ elsewhere: Elsewhere) throws(WormholeError) {
    let operation = "store the home of"
    let bytes = try encoding(operation, name) { try elsewhere.encoded() }
    try naming(operation, name, at: self) { () throws(Errno) in
      try container.replace(Self.elsewhereName, in: home.descriptor, by: bytes, sync: true)
      try home.sync.sync(home.descriptor)
    }
  }

  /// States durably that the member's home is this machine, or none.
  ///
  /// Only the holder of the presence may call this.
  package func removeElsewhere() throws(WormholeError) {
    try naming("remove the home of", name, at: self) { () throws(Errno) in
      try ignoring(.noSuchFile, home.descriptor.unlink(Self.elsewhereName))
      try home.sync.sync(home.descriptor)
    }
  }

  /// Watches for ``elsewhere``; the handler must not wait.
  package func watchElsewhere(
    _ handler: @escaping @Sendable () -> Void
  ) throws(Errno) -> NamedWatch {
    try NamedWatch(container, steps, [.movedTo, .deleted], name: Self.elsewhereName) { _ in
      handler()
    }
  }

  /// Refuses what only the home of the member can do.
  package func checkHome(
    _ operation: String, _ code: WormholeError.Code, hint: String
  ) throws(WormholeError) {
    let elsewhere = try naming(operation, name, at: self, self.elsewhere)
    guard let elsewhere, !Mutants.has(.forgetElsewhere) else { return }
    throw WormholeError(code, operation, name, because: elsewhere.reason, hint: hint)
  }
}

/// A queue whose home is another machine.
///
/// The queue's own directory has the messages that go to the home, as the directory of a member of
/// another machine. The messages that the home has lent to this machine's workers are in the
/// queue's `away/`, which has the parts of a queue. Each message there ends in its `receipts/`,
/// whatever its sender has asked for: the carrier brings the end to the home.
extension MemberDirectory {
  /// The directory in which this machine's workers work on a queue of another machine.
  package func away() throws(Errno) -> MemberDirectory {
    _ = try part(.away)
    let name = Part.away.rawValue
    let home = try container.options.sharing.openExisting(name, in: self.home.descriptor)
    return MemberDirectory(worker: name, of: self, home: home, in: self.home, steps: [name])
  }

  /// Whether the directory is the `away/` of a queue.
  package var isAway: Bool { folder == .queues && steps.count == 3 }
}
