import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let defaults = Verb(
    "defaults", "read, write, delete or watch settings",
    [
      Operand("ACTION", .one, .words(DefaultsAction.allCases.map(\.rawValue))),
      Operand("SUITE", .one, .names(.suites)), Operand("KEY", .optional, .names(.keys)),
      Operand("VALUE", .optional),
    ],
    [.type, .raw, .now, .count, .timeout],
    [
      "A suite is a set of keys with values. Writing one key never reverts a write of another "
        + "process to another key.",
      "ACTION is read, write, delete or watch. 'read' prints the value of KEY in the form of "
        + "'get', or, without KEY, all keys and values, one pair per line with a tab between. "
        + "'write' sets KEY to VALUE or to standard input, as 'put' does. 'delete' removes KEY, "
        + "or, without KEY, all keys. 'watch' writes a line for each change of KEY, or, without "
        + "KEY, of any key, in the form of 'watch' for channels.",
      "With --json, writes one object per setting: suite, key and value, with null for a removed "
        + "setting. Exits with 1 if KEY does not exist.",
    ],
    [
      Example("wormhole defaults write cinema rows 12 --type json", "set a key"),
      Example("wormhole defaults read cinema rows", "print its value"),
      Example("wormhole defaults watch cinema", "print every change in the suite"),
      Example("wormhole defaults delete cinema rows", "remove the key"),
    ],
    // The types as in defaults(1) of other systems: `-int 1`.
    shorthands: [
      "-string": .init(.type, "string"), "-int": .init(.type, "json"),
      "-integer": .init(.type, "json"), "-float": .init(.type, "json"),
      "-real": .init(.type, "json"), "-bool": .init(.type, "json", isTruth: true),
      "-boolean": .init(.type, "json", isTruth: true),
    ],
    action: "use the settings"
  ) { invocation in
    let action: DefaultsAction = try invocation.word { "\($0) defaults: the actions are" }
    // A suite with an empty name would be shared by all callers that mean another name.
    _ = try Container.escape(invocation.suite)
    switch action {
    case .read: return try invocation.readDefaults()
    case .write: return try invocation.writeDefaults()
    case .delete: return try invocation.deleteDefaults()
    case .watch: return try invocation.watchDefaults()
    }
  }
}

enum DefaultsAction: String, CaseIterable { case read, write, delete, watch }

extension Invocation {
  fileprivate var suite: String { operands[1] }
  private var key: String? { operands.count > 2 ? operands[2] : nil }

  fileprivate func readDefaults() throws -> Int32 {
    try refuse(after: 3)
    let values = try open(create: false).defaults(suite).dictionaryRepresentation()
    guard let key else {
      var listing = Listing(output, ["KEY", "VALUE"])
      for (key, value) in values.sorted(by: { $0.key < $1.key }) {
        if output.isJSON {
          try write(key, value, to: output)
        } else {
          try listing.add([.init(key.inOneLine()), .init(value.inOneLine())])
        }
      }
      try listing.finish()
      return 0
    }
    guard let value = values[key] else { throw missing(key) }
    try output.isJSON
      ? write(key, value, to: output) : output.write(value.printed(raw: has(.raw)))
    return 0
  }

  fileprivate func writeDefaults() throws -> Int32 {
    guard let key else {
      throw Failure.usage("cannot write defaults: KEY is missing; try 'wormhole help defaults'")
    }
    let value = try givenValue(at: 3, for: key)
    let container = try open(create: true)
    try EnclosingLock.refuseChange(of: container, "write defaults")
    try container.defaults(suite).set(value, forKey: key)
    if output.isJSON { try write(key, value, to: output.ofDone) }
    return 0
  }

  fileprivate func deleteDefaults() throws -> Int32 {
    try refuse(after: 3)
    let container = try open(create: false)
    try EnclosingLock.refuseChange(of: container, "delete defaults")
    let defaults = container.defaults(suite)
    if let key {
      guard try defaults.dictionaryRepresentation()[key] != nil else { throw missing(key) }
      try defaults.removeObject(forKey: key)
    } else {
      try defaults.removeAll()
    }
    if output.isJSON { try write(key, nil, to: output.ofDone) }
    return 0
  }

  /// Compares all settings with the previous settings, whenever the file changes.
  fileprivate func watchDefaults() throws -> Int32 {
    try refuse(after: 3)
    let telling = try ItemOutput(self)
    let container = try open(create: true)
    let defaults = container.defaults(suite)
    let changes = DefaultsChanges(
      has(.now) ? [:] : try defaults.dictionaryRepresentation(), only: key)
    let slot = try container.storage.slot(.system, Container.Folder.suitePrefix + suite)
    let watch = try slot.watch {
      do {
        for (key, value) in changes.next(try defaults.dictionaryRepresentation()) {
          telling.tell {
            try write(change: key, value)
            return 0
          }
        }
      } catch {
        telling.end(error)
      }
    } ended: { [suite] end in
      telling.end(end.error("watch defaults", suite))
    }
    defer { watch.stop() }
    output.explain("watching '\(suite)'")
    return try telling.wait("watch defaults", suite)
  }

  private func write(change key: String, _ value: PropertyListValue?) throws {
    if output.isJSON { return try write(key, value, to: output) }
    let text = try value?.inOneLine() ?? "(removed)"
    try output.write(line: self.key == nil ? "\(key.inOneLine())\t\(text)" : text)
  }

  private func missing(_ key: String) -> WormholeError {
    WormholeError(
      .notFound, "\(operands[0]) defaults", suite, because: "the suite has no key '\(key)'")
  }

  private func write(
    _ key: String?, _ value: PropertyListValue?, to output: Output
  ) throws {
    try output.write(
      .setting,
      ["suite": .string(suite), "key": key.map { .string($0) }, "value": value])
  }

  private func refuse(after most: Int) throws(Failure) {
    guard operands.count > most else { return }
    throw .usage(
      "cannot \(operands[0]) defaults: unexpected argument '\(operands[most])'; "
        + "try 'wormhole help defaults'")
  }
}

/// The settings at the last comparison.
final class DefaultsChanges: Sendable {
  private let last: Monitor<[String: PropertyListValue]>
  private let only: String?

  init(_ values: [String: PropertyListValue], only key: String?) {
    last = Monitor(values)
    only = key
  }

  /// Returns the settings with a different value now, in order of keys.
  func next(
    _ values: [String: PropertyListValue]
  ) -> [(key: String, value: PropertyListValue?)] {
    last.withLock { last in
      let keys = Set(values.keys).union(last.keys).filter { only == nil || only == $0 }
      let changed = keys.filter { values[$0] != last[$0] }.sorted()
      last = values
      return changed.map { ($0, values[$0]) }
    }
  }
}
