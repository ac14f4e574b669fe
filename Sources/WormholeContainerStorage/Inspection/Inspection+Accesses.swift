internal import WormholeSyscalls

/// Accesses to files: their holders, the waiters, and the files of ended processes.
extension Inspection {
  /// The limit of reported accesses.
  private static let mostAccesses = 50

  mutating func inspectAccesses() throws(Errno) {
    guard let room = try? AccessDirectory(container), let home = try room.existingDirectory() else {
      return
    }
    var sound: Set<String> = []
    for folder in AccessDirectory.folders {
      let path = "system/\(AccessDirectory.slotName)/\(folder)"
      look(at: path) {
        _ = try $0.open(folder, in: home.descriptor)
        sound.insert(path)
      }
    }
    var told = 0
    // An unusable directory has been reported already.
    for place in AccessPlace.allCases + [nil] where sound.contains(Self.path(place)) {
      look(at: Self.path(place)) {
        for name in try $0.names(in: place, of: room, home) {
          told += 1
          guard told <= Self.mostAccesses else { continue }
          try $0.inspect(name, place, room, home)
        }
        if let place { try $0.inspectStrangers(place, room, home) }
      }
    }
    let presenters = "system/\(AccessDirectory.slotName)/\(AccessDirectory.presentersName)"
    if sound.contains(presenters) {
      look(at: presenters) { try $0.inspectPresenters(room, home) }
    }
    guard told > Self.mostAccesses else { return }
    add(
      .note, "system/\(AccessDirectory.slotName)",
      "\(told - Self.mostAccesses) more accesses to files")
  }

  /// - Parameter place: nil for skipped accesses.
  fileprivate static func path(_ place: AccessPlace?) -> String {
    "system/\(AccessDirectory.slotName)/\(place?.name ?? AccessDirectory.passedName)"
  }

  private static let adviceToSetAside = "move the entry to damaged/ with 'wormhole doctor --repair'"

  /// Reports ignored entries, not made by a coordinating program.
  private mutating func inspectStrangers(
    _ place: AccessPlace, _ room: AccessDirectory, _ home: AccessHome
  ) throws(Errno) {
    let strangers = try room.strangers(in: place, of: home)
    for name in strangers.prefix(Self.mostAccesses) {
      add(
        .problem, "\(Self.path(place))/\(name.text)",
        "not a plain file: every program ignores the entry",
        advice: Self.adviceToSetAside, isRepairable: true)
    }
  }

  private func names(
    in place: AccessPlace?, of room: AccessDirectory, _ home: AccessHome
  ) throws(Errno) -> [AccessName] {
    let names =
      if let place { try room.names(in: place, of: home) } else { try room.passedNames(in: home) }
    return names.sorted { $0.stamp < $1.stamp }
  }

  /// - Parameter place: nil for a skipped access.
  private mutating func inspect(
    _ name: AccessName, _ place: AccessPlace?, _ room: AccessDirectory, _ home: AccessHome
  ) throws(Errno) {
    let path = "\(Self.path(place))/\(name.text)"
    let found =
      if let place {
        try room.entry(of: name, in: place, of: home)
      } else {
        try room.passedEntry(of: name, in: home)
      }
    guard let entry = found else { return }
    guard try room.isAlive(name.process, in: home) else {
      return inspectDead(name, entry, place, room)
    }
    guard !room.isTooFarAhead(name) else {
      add(
        .problem, path, "its stamp is more than an hour ahead of the clock",
        advice: Self.adviceToSetAside, isRepairable: true)
      return
    }
    let holder = room.holder(of: name.process, in: home)
    let who = holder.map { "\($0)" } ?? "an unknown process"
    let parts = entry.claim.parts.map { "\($0.writes ? "write" : "read") '\($0.path.text)'" }
    let verb =
      switch place {
      case .waiting: "\(who) waits to "
      case .running: "\(who) may "
      case .overtaken: "\(who) was overtaken, and may still "
      case nil: "\(who) was overtaken; once resumed, the process will request again to "
      }
    let isInTheWay = holder?.state == .stopped && place != .waiting && place != nil
    add(
      isInTheWay ? .problem : .note, path, verb + parts.joined(separator: " and "),
      advice: holder?.advice)
  }
}

extension Inspection {
  /// Reports the files of an access whose process has ended.
  private mutating func inspectDead(
    _ name: AccessName, _ entry: AccessEntry, _ place: AccessPlace?, _ room: AccessDirectory
  ) {
    let path = "\(Self.path(place))/\(name.text)"
    let unproven = room.unproven(entry, of: name)
    for (directory, reason) in unproven.prefix(Self.mostAccesses) {
      add(
        .problem, path,
        "'\(directory)' may be a leftover of an access of an ended process: \(reason)",
        advice: "not removed without proof: check the content and the owner of the directory")
    }
    guard place != nil || unproven.isEmpty else { return }
    add(
      .problem, path, "left by an ended process",
      advice: place == nil
        ? "the next coordinated access removes the file"
        : "the next conflicting access removes the file", isRepairable: true)
  }

  private mutating func inspectPresenters(
    _ room: AccessDirectory, _ home: AccessHome
  ) throws(Errno) {
    let all = try room.everyPresenter().sorted { $0.key.text < $1.key.text }
    for (name, entry) in all.prefix(Self.mostAccesses) {
      let path = "system/\(AccessDirectory.slotName)/\(AccessDirectory.presentersName)/\(name.text)"
      guard try room.isAlive(name.process, in: home) else {
        add(
          .problem, path, "left by an ended process",
          advice: "the next access removes the entry", isRepairable: true)
        continue
      }
      let holder = room.holder(of: name.process, in: home)
      let who = holder.map { "\($0)" } ?? "an unknown process"
      let what = entry.paths.map { "'\($0.text)'" }.joined(separator: " and ")
      add(.note, path, "\(who) presents \(what)")
    }
    guard all.count > Self.mostAccesses else { return }
    add(
      .note, "system/\(AccessDirectory.slotName)",
      "\(all.count - Self.mostAccesses) more presenters of files")
  }
}

extension Container {
  /// Removes the accesses of ended processes; returns their number.
  ///
  /// Entries that no program has made move to `damaged/`.
  ///
  /// - Parameter tell: receives the access directory, which has recorded the removed writers.
  func sweepAccesses(_ tell: (AccessDirectory) -> Void) throws(WormholeError) -> Int {
    let room = try AccessDirectory(self)
    do throws(Errno) {
      guard let home = try room.existingDirectory() else { return 0 }
      defer { tell(room) }
      let swept = try room.sweepDead(in: home)
      for place in AccessPlace.allCases { try setAsideStrangers(in: place, of: room, home) }
      return swept
    } catch {
      guard error != .noSuchFile else { return 0 }
      throw WormholeError(
        error, "sweep", path + "/system/\(AccessDirectory.slotName)", accessesIn: self)
    }
  }
  private func setAsideStrangers(
    in place: AccessPlace, of room: AccessDirectory, _ home: AccessHome
  ) throws(Errno) {
    for name in try room.strangers(in: place, of: home) {
      try setAside(name, from: place, in: home, "the entry was not a plain file")
    }
    for name in try room.names(in: place, of: home) where room.isTooFarAhead(name) {
      try setAside(
        name, from: place, in: home, "its stamp was more than an hour ahead of the clock")
    }
  }

  /// Moves an entry that no program has made to `damaged/`.
  private func setAside(
    _ name: AccessName, from place: AccessPlace, in home: AccessHome, _ reason: String
  ) throws(Errno) {
    let stem = "\(options.environment.sinceEpoch()).\(name.text)"
    let damaged = OpenDirectory(try openFolder(.damaged))
    let directory = try home.folder(place)
    try directory.descriptor.publishAsItIs(name.text, to: damaged.descriptor, "\(stem).plist")
    try explain("\(Inspection.path(place))/\(name.text): \(reason)", as: stem, in: damaged)
  }
}
