internal import WormholeSyscalls

/// Waiting for blockers, and takeovers.
extension AccessExecutor {
  func watch() throws -> AccessMachine<AccessName>.Event {
    if !isWaiting {
      isWaiting = true
      room.bell.enter(room)
    }
    rings = room.bell.rings
    if !held.isEmpty, !Mutants.has(.noRing), try isInRing() {
      throw WormholeError(
        .deadlock, Self.operation, request.subject,
        because: "the conflicting access waits for an enclosing access of the caller",
        hint: "name all paths in a single access, or access the paths in the same order everywhere")
    }
    return .watched
  }

  func endWaiting() {
    guard isWaiting else { return }
    isWaiting = false
    room.bell.leave()
  }

  private func isInRing() throws -> Bool {
    var rooms = [room.key: room]
    for other in request.others() where rooms[other.key] == nil { rooms[other.key] = other }
    var all: [WaitCycle.Seen] = []
    for room in rooms.values { all += try room.everyAccess() }
    return WaitCycle(all).closes(at: token)
  }

  func look(at name: AccessName) throws -> AccessMachine<AccessName>.Event {
    let ended = isWaiting ? room.bell.endedCount(of: machine.blockers) : 0
    if ended > 0 { return .ended(ended) }
    switch try room.look(at: name, in: open()) {
    case .gone: return .gone
    case .dead: return .dead
    case .stands: return .stands
    case .stoodStill(let place, let time):
      if place == .waiting, Mutants.has(.noPassing) { return .stands }
      let isTooShort = place != .waiting && request.takeOver.map { time <= $0 } ?? false
      return isTooShort && !Mutants.has(.ignoreBound) ? .stands : .stoodStill(place)
    }
  }

  func take(
    _ name: AccessName, from place: AccessPlace
  ) throws -> AccessMachine<AccessName>.Event {
    let home = try open()
    let holder = room.holder(of: name.process, in: home)
    // An access that cannot be fenced stays in its directory.
    if let entry = try room.entry(of: name, in: place, of: home) {
      _ = try hiddenDirectories(of: name, entry)
    }
    guard try room.move(name, from: place, to: .overtaken, in: home) else { return .moved }
    container.count { $0.takeovers += 1 }
    container.log(
      .warning, "overtook a suspended access" + (holder.map { " of \($0)" } ?? ""))
    return .taken
  }

  /// Fences the hidden directories of an overtaken access; a takeover requires a fence.
  ///
  /// The files that were moved out are removed afterwards, as far as possible now: the rest is left
  /// to the overtaken process, or to a process that finds it dead.
  func clear(_ name: AccessName) throws -> AccessMachine<AccessName>.Event {
    let home = try open()
    guard !Mutants.has(.keepHidden),
      let entry = try room.entry(of: name, in: .overtaken, of: home)
    else { return .cleared }
    for (path, hidden) in try hiddenDirectories(of: name, entry) {
      do throws(HiddenDirectory.Trouble) {
        try hidden.fence(isOver: isOver)
      } catch {
        throw cannotFence(error, path, of: name)
      }
    }
    if !Mutants.has(.emptyOnly) { _ = room.removeHidden(entry, of: name, isOver: isOver) }
    return .cleared
  }

  private func hiddenDirectories(
    of name: AccessName, _ entry: AccessEntry
  ) throws(WormholeError) -> [(path: String, HiddenDirectory)] {
    var found: [(path: String, HiddenDirectory)] = []
    for path in entry.hidden {
      do throws(HiddenDirectory.Trouble) {
        if let hidden = try room.hidden(path, of: name, entry) { found.append((path, hidden)) }
      } catch {
        throw cannotFence(error, path, of: name)
      }
    }
    return found
  }

  /// Whether the deadline has passed or the wait is cancelled.
  var isOver: () -> Bool {
    { [patience] in patience.hasEnded(at: .now) }
  }

  func sleep() throws -> AccessMachine<AccessName>.Event {
    let now = Instant.now
    if patience.hasEnded(at: now) { return .gaveUp }
    room.observe(machine.blockers.dropLast().reversed(), in: try open())
    // An access with many blockers is not the next one: the first waiters notice a suspended
    // process, and cannot keep up if all waiters check equally often.
    let share = min(40, max(1, machine.blockers.count / 8))
    let tick = now + min(container.options.lease / 8, .milliseconds(25)) * share
    room.bell.wait(
      for: machine.blockers, since: rings, until: min(tick, patience.deadline ?? tick))
    rings = room.bell.rings
    return .woken
  }
}

extension AccessDirectory {
  /// Returns all accesses of living processes, as far as their files can be read.
  ///
  /// An access of a dead process waits for no access, and ends as soon as it blocks another access.
  func everyAccess() throws(Errno) -> [WaitCycle.Seen] {
    guard let home = try existingDirectory() else { return [] }
    var found: [AccessName: WaitCycle.Seen] = [:]
    var living: [String: Bool] = [:]
    for place in AccessPlace.allCases {
      // The first process with an access here may have been killed before it made the directory.
      for name in try ignoring(.noSuchFile, names(in: place, of: home)) ?? [] {
        let lives = living[name.process] ?? (try? isAlive(name.process, in: home)) ?? true
        living[name.process] = lives
        guard lives, let entry = try entry(of: name, in: place, of: home) else { continue }
        let token = AccessToken(container: container.id, name: name.text)
        found[name] = WaitCycle.Seen(token, name, place, entry)
      }
    }
    return Array(found.values)
  }
}
