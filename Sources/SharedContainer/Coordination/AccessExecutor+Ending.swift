/// What an access that has ended says of it.
extension AccessExecutor {
  func conclude(_ ending: AccessMachine<AccessName>.Ending) throws(WormholeError) {
    endWaiting()
    process?.end()
    process = nil
    switch ending {
    case .done: return
    case .superseded:
      throw failure
        ?? WormholeError(
          .superseded, Self.operation, request.subject,
          because: "others went past it while it stood still",
          hint: request.replaced.isEmpty
            ? "look at what it used: others may have changed it meanwhile"
            : "nothing was replaced; do it again")
    case .gaveUp: throw tooLate()
    case .stopped(let name): throw inTheWay(name)
    case .failed:
      throw failure
        ?? WormholeError(.system, Self.operation, request.subject, because: "it failed")
    }
  }

  func tooLate() -> WormholeError {
    if patience.cancellation?.isCancelled == true {
      return WormholeError(
        .cancelled, Self.operation, request.subject, because: "it was cancelled")
    }
    let holder = machine.blockers.last.flatMap { name in
      home.flatMap { room.holder(of: name, in: $0) }
    }
    let who = holder.map { ": \($0) is in the way" } ?? ""
    return WormholeError(
      .timedOut, Self.operation, request.subject, because: "the deadline passed" + who,
      hint: holder?.advice)
  }

  private func inTheWay(_ name: AccessName) -> WormholeError {
    let holder = home.flatMap { room.holder(of: name, in: $0) }
    let who = holder.map { "\($0)" } ?? "a process"
    return WormholeError(
      .stopped, Self.operation, request.subject,
      because: "\(who) is in the way and does not run",
      hint: holder?.advice ?? "let it go on, end it, or ask to take over")
  }
}
