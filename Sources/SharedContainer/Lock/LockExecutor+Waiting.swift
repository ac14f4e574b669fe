internal import Syscalls

extension LockExecutor {
  /// Waits in the kernel's queue, and beside it watches the mark, the coming of a next generation,
  /// and the caller's patience.
  ///
  /// Beside that it asks whoever has the lock again and again to step aside.
  mutating func wait(_ generation: Int) throws(Errno) -> LockMachine.Event {
    let file = state.file!
    defer { WaiterSign.withdraw(from: file.file) }
    let now = slot.container.options.environment.now
    // However it ends: a lock that its thread is granted later would be nobody's.
    defer { file.giveUp() }
    try file.request()
    var observation = LeaseObservation<HolderMark>(
      lease: policy.lease ?? .seconds(1_000_000_000), now: now())
    while true {
      WaiterSign.leave(in: file.file)
      let look = min(patience.deadline ?? .distantFuture, now() + observation.interval)
      if try file.wait(until: look) {
        state.stint.begin()
        return .locked
      }
      if patience.hasEnded(at: now()) {
        giveUp()
        return .gaveUp
      }
      if try isThere(generation + 1) { return .newer }
      let mark = try HolderMark(in: file.file)
      if observation.stoodStill(mark, at: now()), policy.lease != nil { return .stoodStill }
    }
  }

  private mutating func giveUp() {
    let holder = holder()
    if patience.cancellation?.isCancelled == true {
      fail(WormholeError(.cancelled, operation, slot.name, because: "it was cancelled"))
      return
    }
    let who = holder.map { ", which \($0) holds" } ?? ""
    fail(
      WormholeError(
        .timedOut, operation, slot.name,
        because: "the deadline passed in waiting for its lock\(who)",
        hint: holder?.advice))
  }
}

extension Container {
  /// Makes a lock file that this process holds, and lets the body give it its name.
  func withNewLockFile<Result: ~Copyable>(
    _ body: (_ name: String, _ file: borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let mark = HolderMark(of: .current)
    return try withUnsafeBytes(of: mark.words) { bytes throws(Errno) in
      try staging.withFile(bytes, isGuarded: true, body)
    }
  }
}
