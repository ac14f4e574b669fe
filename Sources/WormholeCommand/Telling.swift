import SharedContainer
import Syscalls

/// Telling of one thing after the other as they come, until it is enough.
///
/// What comes is told on whatever thread hears of it, one at a time; the main thread waits.
final class Telling: Sendable {
  /// What the error says could not be done when time is up.
  private let operation: String
  private let subject: String
  private let count: Int?
  private let state = Monitor((told: 0, end: Result<Int32, any Error>?.none))

  init(_ operation: String, _ subject: String, count: Int?) {
    self.operation = operation
    self.subject = subject
    self.count = count
  }

  /// Tells one more, unless it is over; a status other than 0 ends it.
  func tell(_ body: () throws -> Int32) {
    guard state.withLock({ $0.end }) == nil else { return }
    let status = Result { try body() }
    state.signal { state in
      state.told += 1
      switch status {
      case .success(0): if state.told == count { state.end = .success(0) }
      default: state.end = status
      }
    }
  }

  func end(_ error: any Error) { state.signal { $0.end = $0.end ?? .failure(error) } }

  func wait(until deadline: Instant?) throws -> Int32 {
    try watchReader()
    if let end = state.wait(until: deadline, { $0.end }) { return try end.get() }
    let told = state.withLock { $0.told }
    if count == nil, told > 0 { return 0 }
    throw WormholeError(
      .timedOut, operation, subject,
      because: told == 0 ? "nothing came in time" : "only \(told) came in time")
  }

  /// Ends when whoever reads the output has gone, and not only with the next line.
  private func watchReader() throws {
    let state = state
    do throws(Errno) {
      try Thread("reader") {
        if (try? StandardStream.output.waitUntilBroken()) != nil {
          state.signal { $0.end = $0.end ?? .failure(ClosedPipe()) }
        }
      }.detach()
    } catch {
      throw WormholeError(error, "watch", "standard output")
    }
  }
}
