import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

/// The output of items as they arrive, until the end condition.
///
/// Each item is written on its receiving thread, and no two at the same time; the main thread
/// waits.
final class ItemOutput: Sendable {
  private let count: Int?
  let deadline: Instant?
  /// Whether an item in progress is completed after a timeout, or after the reader has gone.
  private let finishes: Bool
  private let state = Monitor(State())

  private struct State {
    var told = 0
    var isBusy = false
    /// Whether the receiving thread rests, or has ended.
    var isQuiet = false
    var end: Result<Int32, any Error>?
  }

  /// Reads the end condition from the options `--count` and `--timeout`.
  ///
  /// The time limit begins now.
  init(_ invocation: Invocation, finishes: Bool = false) throws(Failure) {
    count = try invocation.number(.count, least: 1)
    deadline = try invocation.deadline(.timeout)
    self.finishes = finishes
  }

  /// Handles one more item, unless the output has ended.
  ///
  /// A status other than 0 ends the output; an item without a status does not count.
  ///
  /// - Parameter refuse: called in place of the body if the output has ended.
  /// - Returns: whether the item was handled.
  @discardableResult
  func tell(_ body: () throws -> Int32?, refuse: () -> Void = {}) -> Bool {
    // Items from different sources are also handled one at a time.
    let isFree = state.wait(until: nil) { state -> Bool? in
      guard state.end == nil else { return false }
      guard !state.isBusy else { return nil }
      state.isBusy = true
      return true
    }
    guard isFree == true else {
      refuse()
      return false
    }
    let status = Result { try body() }
    state.signal { state in
      state.isBusy = false
      switch status {
      case .success(nil): break
      case .success(0):
        state.told += 1
        if state.told == count { state.end = state.end ?? .success(0) }
      case .success(let status?): state.end = state.end ?? .success(status)
      case .failure(let error): state.end = state.end ?? .failure(error)
      }
    }
    if case .success = status { return true }
    return false
  }

  /// Blocks the calling thread for ever after the end of the output: claimed messages are not
  /// released before the process ends.
  func restIfOver() {
    guard state.withLock({ $0.end }) != nil else { return }
    state.signal { $0.isQuiet = true }
    let _: Void? = Monitor(()).wait(until: nil) { _ in nil }
  }

  /// Ends the receiving after the end of the output, and waits until the receiving thread rests or
  /// has ended: the thread may be between the claim of an item and this output.
  ///
  /// The wait is bounded: a claim may hang in a system call.
  ///
  /// - Parameter stop: waits for the receiving thread, for ever if it rests.
  func endReceiving(_ stop: @escaping @Sendable () -> Void) {
    let state = state
    do throws(Errno) {
      try Thread("end") {
        stop()
        state.signal { $0.isQuiet = true }
      }.detach()
    } catch {
      return
    }
    let _: Void? = state.wait(until: .now + .seconds(10)) { $0.isQuiet ? () : nil }
  }

  func end(_ error: any Error) { state.signal { $0.end = $0.end ?? .failure(error) } }

  /// Waits for the end; after a timeout, the error names the operation and the subject.
  func wait(_ operation: String, _ subject: String) throws -> Int32 {
    try watchReader()
    let early = state.wait(until: deadline) { state -> Result<Int32, any Error>? in
      finishes && state.isBusy ? nil : state.end
    }
    if let early { return try early.get() }
    // An item that is being written was in time; a reader that does not read is not waited for.
    let _: Void? = state.wait(until: .now + .seconds(1)) { $0.isBusy && $0.end == nil ? nil : () }
    let end = state.wait(until: nil) { state -> Result<Int32, any Error>? in
      if finishes, state.isBusy { return nil }
      state.end = state.end ?? timeUp(state.told, operation, subject)
      return state.end
    }
    return try end!.get()
  }

  private func timeUp(
    _ told: Int, _ operation: String, _ subject: String
  ) -> Result<Int32, any Error> {
    if count == nil, told > 0 { return .success(0) }
    return .failure(
      WormholeError(
        .timedOut, operation, subject,
        because: told == 0
          ? "nothing arrived before the deadline"
          : "only \(told) arrived before the deadline"))
  }

  /// Ends the output as soon as its reader has gone, and not only with the next line.
  private func watchReader() throws {
    let state = state
    try Self.watchReader { state.signal { $0.end = $0.end ?? .failure(ClosedPipe()) } }
  }

  /// Calls a closure as soon as the reader of standard output has gone.
  static func watchReader(_ gone: @escaping @Sendable () -> Void) throws {
    try naming("watch", "standard output") { () throws(Errno) in
      try Thread("reader") {
        if (try? StandardStream.output.waitUntilBroken()) != nil { gone() }
      }.detach()
    }
  }
}
