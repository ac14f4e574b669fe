internal import WormholeSyscalls

/// Removing a member that has no process any more.
///
/// The remover holds the member's presence, so no process can join under the name. Senders may
/// still add messages and files. These parts are not emptied; the kernel only removes empty
/// directories. A late sender finds no directory and makes a new member directory.
extension Container {
  /// Removes the member, or the queue, with all its state; false if there is none.
  package func removeMember(
    _ name: String, in folder: Folder = .members
  ) throws(WormholeError) -> Bool {
    for _ in 0..<100 {
      guard let home = try existingMember(name, in: folder) else { return false }
      try home.refuseRemovalElsewhere()
      do {
        guard let presence = try home.takePresence() else {
          throw WormholeError(
            .nameTaken, folder.removal, name,
            because: "a running process has joined under the name",
            hint: "end the process first")
        }
        defer { presence.release() }
        // Another process has removed the directory first.
        guard try home.isNamed else { continue }
        // Only the holder of the presence writes `elsewhere.plist`, perhaps since the check above.
        try home.refuseRemovalElsewhere()
        try home.remove()
        return true
      } catch let error as Errno {
        if error == .noSuchFile { continue }
        throw WormholeError(error, folder.removal, name, at: home)
      } catch let error as WormholeError {
        throw error
      } catch {
        throw WormholeError(.system, folder.removal, name, because: "\(error)")
      }
    }
    throw WormholeError(
      .conflict, folder.removal, name,
      because: "other processes recreate its directory repeatedly",
      hint: "end the programs that send messages to the \(folder.removed)")
  }
}

extension Container.Folder {
  /// The operation that an error names: members and queues are removed by the same steps.
  fileprivate var removal: String { "remove \(removed)" }

  fileprivate var removed: String { self == .queues ? "queue" : "member" }
}

extension MemberDirectory {
  /// Parts that only the member fills, or parts without use after its removal.
  private static let own: [Part] = [.receipts, .context, .live, .away]
  /// Parts that must be empty: their messages and files are not settled yet.
  ///
  /// Workers come first: nothing is removed from under a worker.
  private static let owed: [Part] = [.workers, .files, .later, .inbox, .claimed, .dead]

  private static let files = [
    presenceName, profileName, progressName, startName, roomName, elsewhereName,
  ]

  /// Returns the first name in the directory that does not belong to a member.
  func foreignName(among names: [String]) -> String? {
    let known = Set(Part.parts(in: folder).map(\.rawValue) + Self.files)
    return names.first { !known.contains($0) }
  }

  fileprivate func refuseRemovalElsewhere() throws(WormholeError) {
    try checkHome(
      folder.removal, .refused,
      hint: "remove the \(folder.removed) on the machine that is its home")
  }

  fileprivate func remove() throws {
    if let foreign = foreignName(among: try home.descriptor.names()) {
      throw refusal(
        "its directory contains a foreign file, '\(foreign)'",
        "move the file out of the directory, and try again")
    }
    try checkParts()
    // A concurrent sender makes the file again.
    _ = try remove(Self.roomName, from: .files)
    for part in Self.owed { try removeIfEmpty(part) }
    let sharing = container.options.sharing
    for part in Self.own { try removeTree(part.rawValue, in: home.descriptor, sharing) }
    for file in Self.files.dropFirst() { try unlink(file) }
    try unlink(Self.presenceName)
    do throws(Errno) {
      try container.folder(folder).descriptor.removeDirectory(escaped)
    } catch {
      guard error == .directoryNotEmpty else { throw error }
      throw WormholeError(
        .conflict, folder.removal, name, because: "another process uses the directory again",
        hint: "try again when no process uses the \(folder.removed); its messages remain")
    }
  }

  /// Checks before anything is removed: a part that is not the member's stops the removal.
  private func checkParts() throws(Errno) {
    for part in Part.parts(in: folder) {
      do throws(Errno) {
        _ = try container.options.sharing.openExisting(part.rawValue, in: home.descriptor)
      } catch {
        guard error == .notPermitted else { continue }
        throw error
      }
    }
  }

  private func removeIfEmpty(_ part: Part) throws {
    do throws(Errno) {
      if Mutants.has(.removeListed) {
        let names = try self.part(part).descriptor.names()
        guard names.isEmpty else { throw .directoryNotEmpty }
        return try removeTree(part.rawValue, in: home.descriptor, container.options.sharing)
      }
      try container.options.sharing.removeEmpty(part.rawValue, in: home.descriptor)
    } catch {
      if error == .noSuchFile { return }
      guard error == .directoryNotEmpty else { throw error }
      let (what, advice) =
        switch part {
        case .dead:
          (
            "its queue contains dead letters",
            "list the dead letters with 'wormhole queue \(name.shellWord) --dead', and retry "
              + "or discard each with '--retry ID' or '--discard ID', or discard all with "
              + "'--discard-all'"
          )
        case .files:
          (
            "its directory contains files of messages",
            "run 'wormhole doctor', which names the files and the remedy"
          )
        case .workers:
          (
            "it has workers, which run or were killed",
            "end the workers; the next worker takes over what a killed one has left"
          )
        default:
          (
            "its queue contains messages",
            "receive the messages, or cancel each with "
              + "'wormhole queue \(name.shellWord) --cancel ID'"
          )
        }
      throw refusal(what, advice)
    }
  }

  private func unlink(_ file: String) throws(Errno) {
    try ignoring(.noSuchFile, home.descriptor.unlink(file))
  }

  private func refusal(_ reason: String, _ hint: String) -> WormholeError {
    WormholeError(.refused, folder.removal, name, because: reason, hint: hint)
  }
}
