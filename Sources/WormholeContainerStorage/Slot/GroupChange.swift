internal import WormholeSyscalls

extension Container {
  /// Changes several slots in one call: all are locked, read, passed to the body together, and
  /// committed.
  ///
  /// The locks are taken in the order of folder and name, so two calls never wait for each other.
  /// Readers see the changes one after the other, and a process that dies during the commits leaves
  /// the first changes made: each file is exchanged separately. The result of the body has one
  /// entry for each slot, in the order of the given slots.
  package func change(
    _ slots: [Slot], _ operation: String, durability: Durability = .process,
    patience: Patience = .unlimited, _ body: ([Slot.Content]) throws -> [SlotChange]
  ) throws {
    let order = slots.indices.sorted {
      (slots[$0].folder.rawValue, slots[$0].escaped)
        < (slots[$1].folder.rawValue, slots[$1].escaped)
    }
    for (left, right) in zip(order, order.dropFirst()) where slots[left] === slots[right] {
      throw WormholeError(
        .nested, operation, slots[left].name, because: "the call contains the name twice",
        hint: "name each value once")
    }
    var group = GroupChange(
      slots: order.map { slots[$0] }, operation: operation, durability: durability,
      patience: patience)
    try group.run { contents in
      var given = [Slot.Content](repeating: .nothing, count: slots.count)
      for (place, index) in order.enumerated() { given[index] = contents[place] }
      let changes = try body(given)
      precondition(changes.count == slots.count, "one change a slot")
      return order.map { changes[$0] }
    }
  }
}

/// A change of several slots, which are in order.
private struct GroupChange {
  let slots: [Slot]
  let operation: String
  let durability: Durability
  let patience: Patience
  private var executors: [LockExecutor] = []
  /// The commits whose names are synced after unlocking.
  private var unsynced: [Commit] = []

  init(slots: [Slot], operation: String, durability: Durability, patience: Patience) {
    self.slots = slots
    self.operation = operation
    self.durability = durability
    self.patience = patience
  }

  mutating func run(_ body: ([Slot.Content]) throws -> [SlotChange]) throws {
    for _ in 0...LockMachine.rerunLimit {
      let isDone: Bool
      do {
        isDone = try runOnce(slots[...], body)
      } catch var error as WormholeError {
        // The error names the values that have changed: these are durable, too.
        if let failure = syncNames() { error.reason += "; \(failure)" }
        throw error
      }
      guard isDone else { continue }
      if let failure = syncNames() { throw failure }
      return
    }
    throw superseded
  }

  /// Syncs the names of all commits, also after a failure; returns the first error.
  ///
  /// Called after unlocking: waiters can commit in the meantime and share the syncs.
  private func syncNames() -> WormholeError? {
    var failure: WormholeError?
    for commit in unsynced {
      do throws(WormholeError) {
        try commit.syncName(operation)
      } catch {
        failure = failure ?? error
      }
    }
    return failure
  }

  /// Takes the locks in order; false if the change has to run again.
  private mutating func runOnce(
    _ rest: ArraySlice<Slot>, _ body: ([Slot.Content]) throws -> [SlotChange]
  ) throws -> Bool {
    guard let slot = rest.first else { return try commitAll(body) }
    return try slot.holdingTurn(operation, patience) {
      var executor = LockExecutor(slot, slot.container.policy, patience, operation)
      guard executor.advance(.begin) == .run else { throw executor.loss }
      executors.append(executor)
      defer {
        var executor = executors.removeLast()
        _ = executor.advance(.unchanged)
      }
      return try runOnce(rest.dropFirst(), body)
    }
  }

  private mutating func commitAll(
    _ body: ([Slot.Content]) throws -> [SlotChange]
  ) throws -> Bool {
    var (found, contents): ([FoundFile], [Slot.Content]) = ([], [])
    for index in slots.indices {
      let (file, content): (FoundFile, Slot.Content)
      if let known = executors[index].known() {
        let directory = executors[index].directory
        (file, content) = (known, try slots[index].content(of: known, in: directory, operation))
      } else {
        if executors[index].beginAnewIfMoved() { return false }
        (file, content) = try slots[index].findForChange(
          in: executors[index].directory, operation)
      }
      found.append(file)
      contents.append(content)
    }
    let changes = try UpdatesUnderWay.inside(slots[0].container.identity) { try body(contents) }
    for (slot, change) in zip(slots, changes) {
      if case .put(let bytes, _) = change { try slot.checkSize(of: bytes, operation) }
    }
    // Checked once more, so that a takeover is noticed before the first commit rather than between
    // commits.
    for index in slots.indices {
      guard try !executors[index].isSuperseded() else { return try runsAgain(index) }
    }
    var done: [Int] = []
    unsynced = []
    for index in slots.indices {
      guard case .put(let bytes, let note) = changes[index] else { continue }
      switch commit(bytes, note, index, over: found[index]) {
      case .success(.committed): break
      case .success(.superseded):
        executors[index].forgetStaging()
        if done.isEmpty || Mutants.has(.repeatPartly) { return try runsAgain(index) }
        throw partlyDone(
          done, because: "another process took over the lock of '\(slots[index].name)'")
      case .failure(let error):
        let meaning = WormholeError(error, operation, slots[index])
        throw done.isEmpty ? meaning : partlyDone(done, because: "\(meaning)")
      }
      done.append(index)
    }
    return true
  }

  /// Returns false, unless the locks were taken over because the update took too long: a repetition
  /// would take too long again.
  private mutating func runsAgain(_ index: Int) throws -> Bool {
    guard executors[index].endTenure() else { return false }
    throw superseded
  }

  private var superseded: WormholeError {
    WormholeError(
      .superseded, operation, slots.map(\.name).joined(separator: ", "),
      because: "another process took over a lock during the update",
      hint: "make the update shorter, or the lease longer")
  }

  private mutating func commit(
    _ bytes: [UInt8], _ note: Int?, _ index: Int, over old: FoundFile
  ) -> Result<CommitOutcome, Errno> {
    var commit = Commit(
      slots[index], executors[index].directory, staging: executors[index].staging, old: old,
      durability)
    let outcome = Result { () throws(Errno) in try commit.run(bytes, note) }
    if case .success(.committed) = outcome {
      _ = executors[index].keep(commit.staged)
      if commit.syncsName { unsynced.append(commit) }
      slots[index].noteUnsaved(commit.unsaved)
    }
    return outcome
  }

  private func partlyDone(_ done: [Int], because reason: String) -> WormholeError {
    let names = done.map { "'\(slots[$0].name)'" }.joined(separator: ", ")
    return WormholeError(
      .partlyDone, operation, slots.map(\.name).joined(separator: ", "),
      because: "only \(names) changed: \(reason)",
      hint: "read all values again, and repeat the missing changes")
  }
}
