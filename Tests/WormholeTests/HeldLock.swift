import TestSupport
import Wormhole
import WormholeSyscalls

/// The lock of a channel, held as by another process until `release()`.
///
/// However slow the machine is, no instance of ``Meeting/patient()`` takes the lock over.
struct HeldLock {
  private let gate = Gate()
  private let thread: Thread
  private let file: String

  init(of channel: String, in meeting: Meeting) throws {
    let (other, gate) = (try meeting.another(Meeting.havePatience), gate)
    thread = try Thread("holder") {
      _ = try? other.channel(channel, of: Int.self).update { _ in gate.pass() }
    }
    file = meeting.path + "/channels/\(channel)/lock/1"
    try gate.waitForSomebody()
  }

  var isHeld: Bool { gate.isClosed }

  func release() {
    gate.open()
    thread.join()
  }

  /// Waits until a call waits for the lock: a waiter sets a flag after the heartbeat in the lock
  /// file.
  func waitForWaiter() async throws {
    let file = file
    try await eventuallyAsync("somebody waits for the lock") {
      try Descriptor.open(path: file, [.readOnly]).contents().dropFirst(64).contains { $0 != 0 }
    }
  }
}
