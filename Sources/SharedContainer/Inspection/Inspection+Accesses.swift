internal import Syscalls

/// Accesses to files: who has them, who waits, and what ended processes have left.
extension Inspection {
  /// What lies in the slot of accesses beside what every slot has.
  static let accessFolders =
    AccessPlace.allCases.map(\.name) + [
      AccessRoom.passedName, AccessRoom.processesName, AccessRoom.presentersName,
    ]

  /// How many are told one by one.
  private static let mostAccesses = 50

  mutating func inspectAccesses() throws(Errno) {
    guard let room = try? AccessRoom(container), let home = try room.existingDirectory() else {
      return
    }
    var told = 0
    for place in AccessPlace.allCases + [nil] {
      look(at: "system/\(AccessRoom.slotName)/\(place?.name ?? AccessRoom.passedName)") {
        for name in try $0.names(in: place, of: room, home) {
          told += 1
          guard told <= Self.mostAccesses else { continue }
          try $0.inspect(name, place, room, home)
        }
      }
    }
    look(at: "system/\(AccessRoom.slotName)/\(AccessRoom.presentersName)") {
      try $0.inspectPresenters(room, home)
    }
    guard told > Self.mostAccesses else { return }
    add(
      Finding(
        .note, "system/\(AccessRoom.slotName)",
        "\(told - Self.mostAccesses) more accesses to files"))
  }

  private func names(
    in place: AccessPlace?, of room: AccessRoom, _ home: OpenDirectory
  ) throws(Errno) -> [AccessName] {
    let names =
      if let place { try room.names(in: place, of: home) } else { try room.passedNames(in: home) }
    return names.sorted { $0.stamp < $1.stamp }
  }

  /// - Parameter place: nil for one that was passed over.
  private mutating func inspect(
    _ name: AccessName, _ place: AccessPlace?, _ room: AccessRoom, _ home: OpenDirectory
  ) throws(Errno) {
    let folder = place?.name ?? AccessRoom.passedName
    let path = "system/\(AccessRoom.slotName)/\(folder)/\(name.text)"
    let found =
      if let place {
        try room.entry(of: name, in: place, of: home)
      } else {
        try room.passedEntry(of: name, in: home)
      }
    guard let entry = found else { return }
    guard try room.isAlive(name.process, in: home) else {
      add(
        Finding(
          .problem, path, "a process that has ended left it",
          advice: place == nil
            ? "the next program that coordinates files removes it"
            : "whoever it would be in the way of removes it", isRepairable: true))
      return
    }
    let holder = room.holder(of: name, in: home)
    let who = holder.map { "\($0)" } ?? "a process that left no name"
    let parts = entry.claim.parts.map { "\($0.writes ? "write" : "read") '\($0.path.text)'" }
    let verb =
      switch place {
      case .waiting: "\(who) waits to "
      case .running: "\(who) may "
      case .overtaken: "others have gone past \(who), which may still "
      case nil: "others have gone past \(who), which comes again when it goes on, to "
      }
    let isInTheWay = holder?.state == .stopped && place != .waiting && place != nil
    add(
      Finding(
        isInTheWay ? .problem : .note, path, verb + parts.joined(separator: " and "),
        advice: holder?.advice))
  }
}

extension Inspection {
  private mutating func inspectPresenters(
    _ room: AccessRoom, _ home: OpenDirectory
  ) throws(Errno) {
    let all = try room.everyPresenter().sorted { $0.key.text < $1.key.text }
    for (name, entry) in all.prefix(Self.mostAccesses) {
      let path = "system/\(AccessRoom.slotName)/\(AccessRoom.presentersName)/\(name.text)"
      guard try room.isAlive(name.process, in: home) else {
        add(
          Finding(
            .problem, path, "a process that has ended left it",
            advice: "whoever would ask it removes it", isRepairable: true))
        continue
      }
      let holder = room.holder(of: name.process, in: home)
      let who = holder.map { "\($0)" } ?? "a process that left no name"
      let what = entry.paths.map { "'\($0.text)'" }.joined(separator: " and ")
      add(Finding(.note, path, "\(who) presents \(what)"))
    }
    guard all.count > Self.mostAccesses else { return }
    add(
      Finding(
        .note, "system/\(AccessRoom.slotName)",
        "\(all.count - Self.mostAccesses) more presenters of files"))
  }
}

extension Container {
  /// Removes the accesses that ended processes have left; answers how many.
  ///
  /// - Parameter tell: is given what knows of the writers among them.
  func sweepAccesses(_ tell: (AccessRoom) -> Void) throws(WormholeError) -> Int {
    let room = try AccessRoom(self)
    do throws(Errno) {
      guard let home = try room.existingDirectory() else { return 0 }
      defer { tell(room) }
      return try room.sweepDead(in: home)
    } catch {
      guard error != .noSuchFile else { return 0 }
      throw WormholeError(error, "sweep", path + "/system/\(AccessRoom.slotName)")
    }
  }
}
