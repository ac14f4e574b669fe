internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists

/// The named queues of this machine, and the moves of their homes.
///
/// The command and the bridge both write the list, which has a file for each queue. Each decides by
/// what it has read, so both write within ``changing(_:within:_:)``.
struct QueueList {
  struct Entry: Equatable {
    /// The next home, by an operator's command.
    var move: String?
    /// The next home, after this machine has given the queue away.
    var heir: String?
    /// How often the home has moved.
    var term = 0
    /// The former homes.
    var before: [String] = []

    /// Whether a machine's statement ends the entry of a queue that was given away: it is the heir
    /// with the term of the move, or a later home.
    ///
    /// An heir that was a home before, in a conflict, states the queue with its earlier term, too.
    /// If the move ended there, the heir would never hear of the move.
    func ends(withHome machine: String, _ term: Int) -> Bool {
      machine == heir ? term >= self.term || Mutants.has(.endEarly) : term > self.term
    }
  }

  static let folderName = "queues"
  private static let termMark = ".term"

  private enum Key {
    static let (move, heir, term, before) = ("move", "heir", "term", "before")
  }

  private let folder: BridgeFolder

  init(of container: Container) throws(WormholeError) {
    folder = try BridgeFolder(
      [Self.folderName], of: container,
      remedy: "restore the file, or remove it and run 'wormhole bridge queue' again")
  }

  /// Reads the entry of a queue; nil for a queue without a name of an operator.
  func entry(_ queue: String) throws(WormholeError) -> Entry? {
    try folder.read(BridgeFolder.file(of: queue)).map { list in
      Entry(
        move: list[Key.move]?.stringValue, heir: list[Key.heir]?.stringValue,
        term: list[Key.term]?.intValue.flatMap(Elsewhere.validTerm) ?? 0,
        before: (list[Key.before]?.arrayValue ?? []).compactMap(\.stringValue))
    }
  }

  /// Runs the body while no other process changes the list.
  func changing<Value>(
    _ queue: String, within patience: Duration, _ body: () throws(WormholeError) -> Value
  ) throws(WormholeError) -> Value {
    try folder.changing("change queue", queue, within: patience, body)
  }

  /// Stores the entry of a queue if the present entry is the known one; false otherwise.
  func replace(
    _ queue: String, _ known: Entry?, by entry: Entry?
  ) throws(WormholeError) -> Bool {
    try changing(queue, within: .milliseconds(100)) { () throws(WormholeError) in
      guard try self.entry(queue) == known else { return false }
      try replace(queue, by: entry)
      return true
    }
  }

  /// Stores the entry of a queue; nil removes the file.
  func replace(_ queue: String, by entry: Entry?) throws(WormholeError) {
    let file = try BridgeFolder.file(of: queue)
    guard let entry else {
      try folder.remove(file)
      return try folder.makeDurable()
    }
    // Other machines would not read the term.
    guard Elsewhere.validTerm(entry.term) != nil else {
      throw WormholeError(
        .tooLarge, "store the home of", queue, because: "the home has moved as often as it can",
        hint: "remove the queue, and use another name")
    }
    var list: [String: PropertyListValue] = [:]
    list[Key.move] = entry.move.map { .string($0) }
    list[Key.heir] = entry.heir.map { .string($0) }
    if entry.term > 0 { list[Key.term] = .integer(Int64(entry.term)) }
    if !entry.before.isEmpty { list[Key.before] = .array(entry.before.map { .string($0) }) }
    try folder.replace(file, by: .dictionary(list))
  }

  // MARK: Homes that were given up

  /// Keeps the term of a home that was given up: otherwise machines that know the term would not
  /// follow the next home.
  func keep(term: Int, of queue: String) throws(WormholeError) {
    if let kept = try keptTerm(of: queue), kept >= term { return }
    try folder.replace(Self.termFile(of: queue), by: [Key.term: .integer(Int64(term))])
  }

  /// The latest term of a home that was given up; nil for none.
  func keptTerm(of queue: String) throws(WormholeError) -> Int? {
    try folder.read(Self.termFile(of: queue))?[Key.term]?.intValue.flatMap(Elsewhere.validTerm)
  }

  private static func termFile(of queue: String) throws(WormholeError) -> String {
    try Container.escape(queue) + termMark
  }

  // MARK: All queues

  /// Reads all entries; an entry that cannot be read holds up no other.
  func entries() throws(WormholeError) -> (
    entries: [String: Entry], errors: [String: WormholeError]
  ) { try folder.readableEntries(entry) }
}
