internal import Syscalls

/// Removing a member whom nobody is any more.
///
/// Its presence is held meanwhile, so nobody joins under the name. What others may be adding to,
/// its messages and their files, is not emptied but only removed where it is empty, which the
/// kernel sees to: whoever comes a moment too late finds no directory, and makes another.
extension Container {
  /// Removes it with all that is known of it; false if there is none.
  package func removeMember(_ name: String) throws(WormholeError) -> Bool {
    for _ in 0..<100 {
      guard let home = try existingMember(name) else { return false }
      do {
        guard let presence = try home.takePresence() else {
          throw WormholeError(
            .nameTaken, "remove member", name, because: "somebody runs under that name",
            hint: "end it first")
        }
        defer { presence.release() }
        // Another was faster.
        guard try home.isNamed else { continue }
        try home.remove()
        return true
      } catch let error as Errno {
        if error == .noSuchFile { continue }
        throw WormholeError(error, "remove member", name)
      } catch let error as WormholeError {
        throw error
      } catch {
        throw WormholeError(.system, "remove member", name, because: "\(error)")
      }
    }
    throw WormholeError(
      .conflict, "remove member", name, because: "it is made anew again and again",
      hint: "see who sends to it")
  }
}

extension MemberDirectory {
  /// What only the member itself adds to, or nobody needs without it.
  private static let own: [Part] = [.receipts, .context, .live]
  /// What is somebody's until it was handled.
  private static let owed: [Part] = [.files, .inbox, .claimed, .dead]

  fileprivate func remove() throws {
    let files = [
      Self.presenceName, Self.profileName, Self.progressName, Self.startName, Self.roomName,
    ]
    let known = Set(Part.allCases.map(\.rawValue) + files)
    if let foreign = try home.descriptor.names().first(where: { !known.contains($0) }) {
      throw refusal("a foreign file lies in it, '\(foreign)'", "move it elsewhere")
    }
    // Whoever sends meanwhile makes it anew.
    _ = try remove(Self.roomName, from: .files)
    for part in Self.owed { try removeIfEmpty(part) }
    for part in Self.own { try removeTree(part.rawValue, in: home.descriptor) }
    for file in files.dropFirst() { try unlink(file) }
    try unlink(Self.presenceName)
    do throws(Errno) {
      try container.folder(folder).descriptor.removeDirectory(escaped)
    } catch {
      guard error == .directoryNotEmpty else { throw error }
      throw WormholeError(
        .conflict, "remove member", name, because: "somebody has begun to use it meanwhile",
        hint: "what was sent to it is still there")
    }
  }

  private func removeIfEmpty(_ part: Part) throws {
    do throws(Errno) {
      try home.descriptor.removeDirectory(part.rawValue)
    } catch {
      if error == .noSuchFile { return }
      guard error == .directoryNotEmpty else { throw error }
      let (what, advice) =
        switch part {
        case .dead:
          ("messages that were given up are kept", "look with 'wormhole queue \(name) --dead'")
        case .files: ("files of messages lie in it", "see 'wormhole doctor'")
        default:
          ("messages wait for it", "receive them, or take them back: see 'wormhole queue \(name)'")
        }
      throw refusal(what, advice)
    }
  }

  private func unlink(_ file: String) throws(Errno) {
    do throws(Errno) {
      try home.descriptor.unlink(file)
    } catch {
      guard error == .noSuchFile else { throw error }
    }
  }

  private func refusal(_ reason: String, _ hint: String) -> WormholeError {
    WormholeError(.refused, "remove member", name, because: reason, hint: hint)
  }
}
