internal import WormholeSyscalls

extension LockExecutor {
  /// Waits in the kernel's queue, and checks in intervals for a stopped heartbeat, a next
  /// generation, and the caller's deadline or cancellation.
  ///
  /// Each check also requests the holder to yield.
  mutating func wait(_ generation: Int) throws(Errno) -> LockMachine.Event {
    let file = state.file!
    defer { WaiterFlag.withdraw(from: file.file) }
    // On every exit: no caller would use a lock that the thread gets later.
    defer { file.giveUp() }
    try file.request()
    var observation = LeaseObservation<HolderMark>(
      lease: policy.lease ?? .seconds(1_000_000_000), now: .now)
    while true {
      WaiterFlag.leave(in: file.file)
      let look = min(patience.deadline ?? .distantFuture, .now + observation.interval)
      if try file.wait(until: look) {
        state.stint.begin()
        return .locked
      }
      if patience.hasEnded(at: .now) {
        giveUp()
        return .gaveUp
      }
      if try isThere(generation + 1) { return .newer }
      let mark = try HolderMark(in: file.file)
      if observation.stoodStill(mark, at: .now), policy.lease != nil { return .stoodStill }
    }
  }

  private mutating func giveUp() {
    let holder = holder()
    if patience.cancellation?.isCancelled == true {
      fail(WormholeError(.cancelled, operation, slot.name, because: "the operation was cancelled"))
      return
    }
    let who = holder.map { ", held by \($0)" } ?? ""
    fail(
      WormholeError(
        .timedOut, operation, slot.name,
        because: "the deadline passed while waiting for the lock\(who)",
        hint: holder?.advice))
  }
}

extension Container {
  /// Makes a locked lock file, and calls the body to give the file a name.
  func withNewLockFile<Result: ~Copyable>(
    _ body: (_ name: String, _ file: borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let mark = HolderMark(of: .current)
    return try staging.withFile(CollectionOfOne(mark.words).span.bytes, isGuarded: true, body)
  }
}
