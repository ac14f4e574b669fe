internal import WormholeSyscalls

/// Replacing files.
extension AccessExecutor {
  func hide() throws -> AccessMachine<AccessName>.Event {
    guard let entry else { return .hidden }
    let maker = room.maker(entry)
    for (target, path) in zip(request.replaced, entry.hidden) {
      do throws(Errno) {
        files.append(try HiddenFile(beside: target, at: path, by: maker))
      } catch {
        files = []
        if let name, room.removeHidden(entry, of: name) != .done { leavesHidden = true }
        throw WormholeError(error, "create a directory for the new file beside", target.text)
      }
    }
    return .hidden
  }

  func unhide() throws -> AccessMachine<AccessName>.Event {
    defer { files = [] }
    leavesHidden = true
    var isWhole = true
    for file in files where try !removed(file) { isWhole = false }
    leavesHidden = !isWhole
    return .unhidden
  }

  /// Removes the files that an own access has made; false if any are left.
  private func removed(_ file: HiddenFile) throws -> Bool {
    var tries = 0
    while true {
      do throws(HiddenDirectory.Trouble) {
        return try file.remove()
      } catch {
        // Other processes would have to remove the remaining files, so a single error is not enough
        // to give up.
        tries += 1
        if tries < 3 { continue }
        guard case .system(let error) = error else {
          container.log(.warning, "could not remove '\(file.path)': \(error.reason)")
          return false
        }
        throw error
      }
    }
  }

  func commit() throws -> AccessMachine<AccessName>.Event {
    for (index, file) in files.enumerated() {
      switch try file.exchange() {
      case .exchanged: break
      case .superseded: return .superseded
      case .nothingMade:
        guard stands else { return .superseded }
        if request.mayMakeNothing { continue }
        throw WormholeError(
          .notFound, "replace", request.replaced[index].text,
          because: "no file was created at the path of the new file")
      }
    }
    return .committed
  }
}

/// The ending of an access, and its errors.
extension AccessExecutor {
  /// The number of files that an access which has replaced a folder removes after waiters can
  /// continue.
  private static let mostRemoved = 1_000_000

  func conclude(_ ending: AccessMachine<AccessName>.AccessEnd) throws(WormholeError) {
    endWaiting()
    // The remaining files block no access by now.
    if let home { room.removeLeft(in: home, most: Self.mostRemoved) }
    process?.end()
    process = nil
    switch ending {
    case .done: return
    case .superseded:
      throw failure
        ?? WormholeError(
          .superseded, Self.operation, request.subject,
          because: "another access overtook this one while its process was suspended",
          hint: request.replaced.isEmpty
            ? "check the files of the access: another program may have changed the files"
            : "no file was replaced; repeat the access")
    case .gaveUp: throw tooLate()
    case .stopped(let name): throw inTheWay(name)
    case .failed:
      throw failure
        ?? WormholeError(.system, Self.operation, request.subject, because: "the access failed")
    }
  }

  /// Returns the error for a suspended access that cannot be overtaken.
  func cannotFence(
    _ trouble: HiddenDirectory.Trouble, _ path: String, of name: AccessName
  ) -> WormholeError {
    let holder = home.flatMap { room.holder(of: name.process, in: $0) }
    let who = holder.map { "\($0)" } ?? "a suspended process"
    var error =
      switch trouble {
      case .system(let error): WormholeError(error, Self.operation, request.subject)
      case .closed: WormholeError(.accessDenied, Self.operation, request.subject)
      case .filled where isOver(): tooLate()
      case .filled: WormholeError(.system, Self.operation, request.subject, because: "")
      case .misplaced, .unproven:
        WormholeError(.refused, Self.operation, request.subject, because: "")
      }
    error.reason = "failed to fence the directory '\(path)' of \(who): \(trouble.reason)"
    error.hint =
      "end the process, or check the content of the directory and move the directory elsewhere"
    return error
  }

  func tooLate() -> WormholeError {
    if patience.cancellation?.isCancelled == true {
      return WormholeError(
        .cancelled, Self.operation, request.subject, because: "the access was cancelled")
    }
    let holder = machine.blockers.last.flatMap { name in
      home.flatMap { room.holder(of: name.process, in: $0) }
    }
    let who = holder.map { ": \($0) has a conflicting access" } ?? ""
    return WormholeError(
      .timedOut, Self.operation, request.subject, because: "the deadline passed" + who,
      hint: holder?.advice)
  }

  private func inTheWay(_ name: AccessName) -> WormholeError {
    let holder = home.flatMap { room.holder(of: name.process, in: $0) }
    let who = holder.map { "\($0)" } ?? "a process"
    return WormholeError(
      .stopped, Self.operation, request.subject,
      because: "\(who) has a conflicting access and is suspended",
      hint: holder?.advice ?? "resume or end the process, or permit a takeover with 'takeOverAfter'"
    )
  }
}
