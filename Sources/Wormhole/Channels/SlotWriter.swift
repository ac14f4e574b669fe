internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Turns values into files for a slot's commits.
struct SlotWriter {
  let slot: Slot
  // Do not store the options: they are many, and each copy counts references to all of them.
  private let container: SharedContainer
  let patience: Patience
  /// The name in error messages.
  let name: String

  init(_ slot: Slot, of container: SharedContainer, name: String) {
    self.slot = slot
    self.container = container
    patience = container.patience
    self.name = name
  }

  /// For the body of a change; throws for a copy, which only its home changes.
  func count(_ content: Slot.Content) throws(WormholeError) -> VersionCount {
    let count = countAnywhere(content)
    let home: ChannelHome?
    switch content {
    case .value: home = count.home
    // Only the file beside the value states that the channel is a copy.
    case .nothing, .damaged, .tooLarge: home = try slot.home()
    }
    if let home, !Mutants.has(.changeCopies) { throw home.refusal("change channel", name) }
    return count
  }

  /// As ``count(_:)``, for copies too.
  func countAnywhere(_ content: Slot.Content) -> VersionCount {
    if let version = slot.note, version < VersionCount.last { return VersionCount(version) }
    let now = container.options.environment.sinceEpoch()
    // A channel that is written for the first time may have the name of a removed channel.
    if case .nothing = content {
      return VersionCount(removed: container.storage.removedVersion(), sinceEpoch: now)
    }
    return VersionCount(content, limits: container.options.limits, sinceEpoch: now)
  }

  /// Returns the file of a value, or the file that states that the channel was cleared.
  ///
  /// - Parameters:
  ///   - count: of the content that the file replaces.
  ///   - until: when the value expires; nil for never.
  ///   - sent: the time that the value states; nil for the present time.
  func seal<Value: Encodable>(
    _ value: Value?, _ count: VersionCount, until: Date? = nil, sent: Date? = nil,
    _ operation: @autoclosure () -> String
  ) throws(WormholeError) -> [UInt8] {
    if let value { return try seal(value: value, count, until: until, sent: sent, operation()) }
    return try sealNothing(count, operation())
  }

  private func sealNothing(
    _ count: VersionCount, _ operation: @autoclosure () -> String
  ) throws(WormholeError) -> [UInt8] {
    try sealing(operation()) { try Envelope.seal(fields(count, sent: now, until: nil), $0) }
  }

  private func seal<Value: Encodable>(
    value: Value, _ count: VersionCount, until: Date?, sent: Date? = nil,
    _ operation: @autoclosure () -> String
  ) throws(WormholeError) -> [UInt8] {
    try sealing(operation()) {
      try Envelope.seal(value, fields(count, sent: sent ?? now, until: until), $0)
    }
  }

  /// The time that a value states if it is written now.
  var now: Date { Date(sinceEpoch: container.options.environment.sinceEpoch()) }

  private func fields(_ count: VersionCount, sent: Date, until: Date?) -> Envelope.Header {
    Envelope.Header(
      version: count.next, sent: sent, from: container.options.writerName, until: until,
      operations: Mutants.has(.dropOperations) ? nil : count.operations)
  }

  private func sealing(
    _ operation: @autoclosure () -> String, _ body: (BinaryEncoder) throws -> [UInt8]
  ) throws(WormholeError) -> [UInt8] {
    try WormholeError.writing(operation(), name) {
      try body(BinaryEncoder(limits: container.options.limits))
    }
  }

  /// Commits a value in place of any content, unless the present version differs from the expected
  /// version.
  ///
  /// - Parameter until: when the value expires; nil for never.
  /// - Returns: the version of the value.
  func put<Value: Encodable>(
    _ operation: String, _ value: Value, ifVersion expected: Int?, _ durability: Durability?,
    until: Date? = nil
  ) throws(WormholeError) -> Int {
    try commit(operation, ifVersion: expected, durability) { count throws(WormholeError) in
      try seal(value: value, count, until: until, "\(operation) channel")
    }
  }

  /// Commits that the channel is cleared, and removes all copies, if its value had expired at a
  /// moment.
  ///
  /// - Returns: whether the value had expired.
  func clearExpired(by moment: Date) throws(WormholeError) -> Bool {
    var hasExpired = false
    _ = try commit(
      "clear", ifVersion: nil, nil, erasing: true,
      isRepeatable: false,
      unless: { content in
        hasExpired = until(content).map { $0 <= moment } ?? false
        return !hasExpired
      }
    ) { count throws(WormholeError) in
      try sealNothing(count, "clear channel")
    }
    return hasExpired
  }

  /// When the value expires; nil for never, and without a value.
  private func until(_ content: Slot.Content) -> Date? {
    guard case .value(let bytes, recovered: false) = content else { return nil }
    let file = try? Envelope.OpenFile(bytes, BinaryDecoder(limits: container.options.limits))
    return file.flatMap { $0.hasValue ? $0.header.until : nil }
  }

  /// Commits that the channel is cleared; otherwise the same as `put`.
  func clear(
    ifVersion expected: Int?, _ durability: Durability?, erasing: Bool
  ) throws(WormholeError) -> Int {
    let isPower = durability ?? container.options.durability == .power
    return try commit(
      "clear", ifVersion: expected, durability, erasing: erasing,
      unless: { !erasing && isClear($0) && (!isPower || $0.isSynced) }
    ) { count throws(WormholeError) in
      try sealNothing(count, "clear channel")
    }
  }

  private func commit(
    _ operation: String, ifVersion expected: Int?, _ durability: Durability?,
    erasing: Bool = false, isRepeatable: Bool = true,
    unless isDone: (Slot.Content) -> Bool = { _ in false },
    _ file: (_ count: VersionCount) throws(WormholeError) -> [UInt8]
  ) throws(WormholeError) -> Int {
    try WormholeError.writing("\(operation) channel", name) {
      var version = 0
      let level = durability ?? container.options.durability
      let outcome = try slot.change(
        operation, durability: level, patience: patience, erasing: erasing
      ) { content in
        let count = try count(content)
        try check(expected, count.present, operation)
        if isDone(content) {
          version = count.present ?? 0
          return .none
        }
        if case .value = content, count.present == nil {
          container.log(
            .warning, "the file in \(slot.folder) '\(name)' had an unknown format; replaced",
            about: slot.logSubject)
        }
        version = count.next
        return .put(try file(count), note: count.note)
      }
      // An earlier call may have made the change, without the sync of the name.
      if outcome == .unchanged, level == .power, isRepeatable {
        try slot.syncName("\(operation) channel")
      }
      return version
    }
  }

  private func isClear(_ content: Slot.Content) -> Bool {
    switch content {
    case .nothing: true
    case .damaged, .tooLarge: false
    // Recovered content may differ from the content that readers last saw.
    case .value(_, recovered: true): false
    case .value(let bytes, recovered: false):
      (try? Envelope.OpenFile(bytes, BinaryDecoder(limits: container.options.limits)))
        .map { !$0.hasValue } ?? false
    }
  }

  private func check(
    _ expected: Int?, _ present: Int?, _ operation: String
  ) throws(WormholeError) {
    guard let expected, expected != present else { return }
    let there =
      switch present {
      case nil: "the value is damaged"
      case 0: "no value was ever put"
      case .some(let version): "the channel has version \(version)"
      }
    throw WormholeError(
      .conflict, "\(operation) channel", name,
      because: "version \(expected) was expected, and \(there)",
      hint: "read the channel, and try again")
  }
}

extension Date {
  /// The moment a number of nanoseconds after 1970, to the precision of a date.
  init(sinceEpoch nanoseconds: Int64) {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    let sinceReference = Double(seconds) - Date.timeIntervalBetween1970AndReferenceDate
    self.init(timeIntervalSinceReferenceDate: sinceReference + Double(rest) / 1e9)
  }
}
