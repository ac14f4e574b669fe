internal import FoundationEssentials
package import WormholeContainerStorage
package import WormholePropertyLists
internal import WormholeSyscalls

/// A suite as a whole, for modules that present the suite under the names of another library.
extension Defaults {
  /// Changes several keys at once, and returns the suite's new version; nil if no value differs
  /// from before.
  ///
  /// As ``update(_:)``. With `.power`, equal values that were written without a sync are written
  /// again, and the new version is returned.
  package func change(
    _ body: (inout [String: PropertyListValue]) throws(WormholeError) -> Void
  ) throws(WormholeError) -> Int? {
    try WormholeError.writing("write defaults", suite) { try changing(body) }
  }

  /// As `change(_:)`, and rethrows the errors of the body, unchanged.
  func changing(_ body: (inout [String: PropertyListValue]) throws -> Void) throws -> Int? {
    try changing(only: nil) { values in
      let before = values
      try body(&values)
      return values != before
    }
  }

  /// Sets one key, and returns the suite's new version; nil if the key has the value already.
  ///
  /// Takes less time than ``change(_:)``, which compares all keys.
  package func change(
    _ key: String, to value: PropertyListValue?
  ) throws(WormholeError) -> Int? {
    let value = try WormholeError.writing("write defaults", suite) {
      try value?.separate(container.options.limits)
    }
    return try change(key, toSeparate: value)
  }

  /// As `change(_:to:)`, for a value that was read from a property list.
  func change(
    _ key: String, toSeparate value: PropertyListValue?
  ) throws(WormholeError) -> Int? {
    try WormholeError.writing("write defaults", suite) {
      try changing(only: key) { values in
        if values[key] == value { return false }
        values[key] = value
        return true
      }
    }
  }

  /// - Parameters:
  ///   - key: the only key that the body changes, to a value that is separate from the caller's
  ///     memory; nil for a body that may change all keys, whose values do not stay decoded.
  ///   - body: changes the values, and returns whether one of them differs from before.
  private func changing(
    only key: String?, _ body: (inout [String: PropertyListValue]) throws -> Bool
  ) throws -> Int? {
    let slot = try slot.get()
    let writer = SlotWriter(slot, of: container, name: suite)
    let reader = reader
    var written: (version: Int, sent: Date, values: [String: PropertyListValue])?
    var file: CommittedFile?
    var isOfBody = false
    do {
      let change = try slot.changeKeepingOpen(
        "write", durability: container.options.durability, patience: writer.patience
      ) { content in
        (written, isOfBody) = (nil, false)
        var taken = try takeOwn(slot.note) ?? KnownValues(values: decode(content, reader))
        let isChanged: Bool
        do {
          isChanged = try body(&taken.values)
        } catch {
          isOfBody = true
          throw error
        }
        let isDurable = container.options.durability != .power || content.isSynced
        guard isChanged || !isDurable else {
          if key != nil { giveBack(taken) }
          return .none
        }
        let (count, sent) = (try writer.count(content), writer.now)
        written = (count.next, sent, taken.values)
        let file =
          try reseal(content, taken, key, version: count.next, sent)
          ?? writer.seal(taken.values, count, sent: sent, "write defaults")
        return .put(file, note: count.note)
      }
      file = change.file
      // An earlier call may have made the change, without the sync of the name.
      if change.outcome == .unchanged, container.options.durability == .power {
        try slot.syncName("write defaults")
      }
    } catch let error as WormholeError where !isOfBody {
      throw error.named(suite, "write defaults")
    }
    guard let written else { return nil }
    let stamp = Stamp.version(written.version, written.sent, recovered: false)
    known.withLock { known in
      known.content =
        key == nil
        ? nil : KnownValues(values: written.values, file: file, version: written.version)
      known.stamped = file.map { (file: $0, stamp: stamp) }
    }
    return written.version
  }

  /// Returns the file of a change of one key, if it can be made from the file that this object has
  /// written last.
  private func reseal(
    _ content: Slot.Content, _ taken: KnownValues, _ key: String?, version: Int, _ sent: Date
  ) -> [UInt8]? {
    guard taken.version != nil, let key, let value = taken.values[key],
      case .value(let file, recovered: false) = content
    else { return nil }
    return Envelope.reseal(
      file, key, value, version: version, sent: sent, container.options.limits)
  }

  /// Takes the values that this object has written as this version; nil if it has not.
  ///
  /// The values are taken out, so that a change of one key copies no other key.
  private func takeOwn(_ version: Int?) -> KnownValues? {
    guard let version else { return nil }
    return known.withLock { known in
      known.content?.version == version ? known.content.take() : nil
    }
  }

  /// Keeps values that were taken and not changed, unless another thread has read newer ones.
  private func giveBack(_ values: KnownValues) {
    guard values.version != nil else { return }
    known.withLock { known in known.content = known.content ?? values }
  }

  private func decode(
    _ content: Slot.Content, _ reader: SlotReader
  ) throws(WormholeError) -> [String: PropertyListValue] {
    try reader.snapshot(of: content, as: [String: PropertyListValue].self)?.value ?? [:]
  }

  /// Returns all keys that are set, without registered ones.
  ///
  /// The values stay decoded, and their file open, also after this object has written them: as long
  /// as the file is the latest, one system call replaces reading.
  package func all() throws(WormholeError) -> [String: PropertyListValue] {
    let slot = try slot.get()
    if let known = known.withLock({ $0.content }), let file = known.file, slot.isLatest(file) {
      return known.values
    }
    let (content, file) = try slot.readKeepingOpen()
    let values = try decode(content, reader)
    guard case .value(_, recovered: false) = content, let file else {
      known.withLock { $0.content = nil }
      return values
    }
    known.withLock { $0.content = KnownValues(values: values, file: file) }
    return values
  }

  /// Calls a closure with the suite's version whenever any key has changed, from now on.
  ///
  /// - Parameter failure: called if the suite cannot be read; the watch continues. Without this
  ///   closure, errors go to the log.
  package func watchVersion(
    _ handler: @escaping @Sendable (Int) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    let slot = try slot.get()
    let present = WatchResult(reading: slot, container.options.limits)
    let (reader, known, feeds) = (reader, known, container.feeds)
    let plan = WatchPlan<Int>(
      seen: [slot.escaped: present.stamp],
      join: { (listener) throws(WormholeError) in
        let (feed, source) = try feeds.source(for: listener, slot)
        let look = { @Sendable in known.ownChange(of: slot) ?? source.look() }
        listener.join(
          slot.escaped, ChangeSource(look: look, loss: source.loss, leave: source.leave))
        feed.greet(listener)
      },
      interpreter: {
        { (finding, pass) throws(WormholeError) in
          if case .version(let version, _, _) = finding.stamp { return pass(version) }
          if let (file, _) = try reader.open(finding) { pass(file.header.version) }
        }
      })
    return try plan.observe(
      in: container.subscriptions, on: nil, handler,
      container.failureHandler(failure, about: LogSubject(suite: suite)))
  }
}

extension PropertyListValue {
  /// Returns the value as a reader of its file gets it, in memory of its own.
  ///
  /// Data may be in memory that its owner changes or frees later.
  fileprivate func separate(_ limits: PropertyListLimits) throws -> PropertyListValue {
    switch self {
    case .string, .integer, .real, .boolean, .date: return self
    case .unsigned, .data, .array, .dictionary:
      return try PropertyListValue(encoding: self, limits: limits)
    }
  }
}

/// The values of a suite, decoded.
struct KnownValues: Sendable {
  var values: [String: PropertyListValue]
  /// The file with the values, if the file stays open.
  var file: CommittedFile?
  /// The version of the values, if the object has written them.
  var version: Int?
}

/// The content of a suite that an object knows.
struct KnownSuite: Sendable {
  /// The values that were read or written last; nil during a change.
  var content: KnownValues?
  /// The last file that was written, if the file stays open, for the watch.
  var stamped: (file: CommittedFile, stamp: Stamp)?
}

extension Monitor<KnownSuite> {
  /// Returns the finding about the object's own change as long as no later change has been made;
  /// nil for every other change.
  ///
  /// The watch is notified of the object's own changes too, and would read the file of each change.
  func ownChange(of slot: Slot) -> WatchResult? {
    guard let own = withLock({ $0.stamped }) else { return nil }
    if slot.isLatest(own.file) { return WatchResult(name: slot.name, stamp: own.stamp) }
    // The file would occupy its disk space until the next change.
    withLock { known in
      if known.stamped?.file === own.file { known.stamped = nil }
    }
    return nil
  }
}
