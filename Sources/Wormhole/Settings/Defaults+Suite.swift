package import WormholeContainerStorage
package import WormholePropertyLists

/// A suite as a whole, for modules that present the suite under the names of another library.
extension Defaults {
  /// Changes several keys at once, and returns the suite's new version; nil if no value differs
  /// from before.
  ///
  /// As ``update(_:)``.
  package func change(
    _ body: (inout [String: PropertyListValue]) throws(WormholeError) -> Void
  ) throws(WormholeError) -> Int? {
    try WormholeError.writing("write defaults", suite) { try changing(body) }
  }

  /// As `change(_:)`, and rethrows the errors of the body.
  func changing(_ body: (inout [String: PropertyListValue]) throws -> Void) throws -> Int? {
    let slot = try slot.get()
    let writer = SlotWriter(slot, of: container, name: suite)
    let reader = reader
    var version: Int?
    try slot.change(
      "write", durability: container.options.durability, patience: writer.patience
    ) { content in
      let before = try reader.snapshot(of: content, as: [String: PropertyListValue].self)?.value
      var after = before ?? [:]
      try body(&after)
      version = nil
      if after == before ?? [:] { return .none }
      let count = try writer.count(content)
      version = count.next
      return .put(try writer.seal(after, count, "write defaults"), note: count.note)
    }
    return version
  }

  /// Returns all keys that are set, without registered ones.
  package func all() throws(WormholeError) -> [String: PropertyListValue] {
    try reader.snapshot(of: slot.get().read(), as: [String: PropertyListValue].self)?.value ?? [:]
  }

  /// Calls a closure with the suite's version whenever any key has changed, from now on.
  package func watchVersion(
    _ handler: @escaping @Sendable (Int) -> Void
  ) throws(WormholeError) -> Subscription {
    let slot = try slot.get()
    let present = WatchResult(reading: slot, container.options.limits)
    let reader = reader
    let plan = WatchPlan<Int>(
      seen: [slot.escaped: present.stamp],
      join: { (listener) throws(WormholeError) in try self.container.feeds.join(listener, slot) },
      interpreter: {
        { (finding, pass) throws(WormholeError) in
          if let (file, _) = try reader.open(finding) { pass(file.header.version) }
        }
      })
    return try plan.observe(
      in: container.subscriptions, on: nil, handler,
      container.failureHandler(nil, about: LogSubject(suite: suite)))
  }
}
