import TestSupport
import WormholeContainerStorage
import WormholeSyscalls

/// Runs the body on `count` threads at once, and throws the first error that a thread threw.
func together(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
  let failure = Monitor<(any Error)?>(nil)
  let threads = try (0..<count).map { index in
    try Thread("together") {
      do { try body(index) } catch { failure.withLock { $0 = $0 ?? error } }
    }
  }
  for thread in threads { thread.join() }
  if let error = failure.withLock({ $0 }) { throw error }
}

/// A gate that opens once, and that threads wait for.
final class Gate: Sendable {
  private let isOpen = Monitor(false)

  func open() { isOpen.signal { $0 = true } }

  func wait() throws {
    guard isOpen.wait(until: .now + patience, { $0 ? true : nil }) == true else {
      throw Crowd.Failure(description: "a gate stayed shut")
    }
  }
}

/// A thread that stays inside an update until `end()`.
final class Holding: Sendable {
  private let exit = Gate()
  private let thread: Thread
  private let failure = Monitor<(any Error)?>(nil)

  init(_ slot: Slot) throws {
    let inside = Gate()
    thread = try Thread("holding") { [exit, failure] in
      do {
        try slot.change("hold") { _ in
          inside.open()
          try exit.wait()
          return .none
        }
      } catch {
        failure.withLock { $0 = error }
      }
    }
    try inside.wait()
  }

  func end() throws {
    exit.open()
    thread.join()
    if let error = failure.withLock({ $0 }) { throw error }
  }
}
