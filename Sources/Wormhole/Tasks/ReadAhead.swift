internal import WormholeSyscalls

/// Parts of a long list in order, of which a second thread reads the next ones ahead.
///
/// The caller reads each part with which the thread has not begun. So a list is read without the
/// thread, too: if it is short, or if no thread is free.
final class ReadAhead<Part: Sendable>: Sendable {
  private struct State {
    /// The first part that nobody has begun to read.
    var next = 0
    /// How many parts the caller has taken.
    var taken = 0
    /// Parts that the thread has read.
    var read: [Int: Part] = [:]
    var isStopped = false
  }

  private enum Step {
    case own
    case read(Part)
  }

  private let count: Int
  private let step: Int
  private let read: @Sendable (Range<Int>) -> Part
  private let state = Monitor(State())

  /// The largest number of parts in memory.
  private static var window: Int { 4 }
  /// A list of fewer parts is read by the caller alone.
  private static var fewest: Int { 8 }

  /// - Parameters:
  ///   - count: the length of the list.
  ///   - step: the length of a part.
  ///   - threads: the pool whose thread reads the parts ahead.
  ///   - read: reads a part, on the caller's thread or on another.
  init(
    _ count: Int, step: Int, on threads: CallThreads = .background,
    _ read: @escaping @Sendable (Range<Int>) -> Part
  ) {
    (self.count, self.step, self.read) = (count, step, read)
    guard parts >= Self.fewest else { return }
    threads.add { self.readAhead() }
  }

  private var parts: Int { (count + step - 1) / step }

  private func part(_ number: Int) -> Part {
    read(number * step..<min(count, (number + 1) * step))
  }

  private func readAhead() {
    // On the caller's own thread, nobody would take the parts.
    guard !CallThreads.isBorrowed else { return }
    while let number = begin() {
      let part = part(number)
      state.signal { if !$0.isStopped { $0.read[number] = part } }
    }
  }

  /// Begins with the next part, once there is room for it; nil at the end.
  private func begin() -> Int? {
    let number = state.wait(until: nil) { state -> Int?? in
      guard !state.isStopped, state.next < parts else { return .some(nil) }
      guard state.next - state.taken < Self.window else { return nil }
      state.next += 1
      return state.next - 1
    }
    return number ?? nil
  }

  /// Returns the next part; nil after the last one.
  func next() -> Part? {
    let number = state.withLock { $0.taken }
    guard number < parts else { return nil }
    let step = state.wait(until: nil) { state -> Step? in
      if let part = state.read.removeValue(forKey: number) { return .read(part) }
      guard state.next == number else { return nil }
      state.next += 1
      return .own
    }
    defer { state.signal { $0.taken += 1 } }
    if case .read(let part) = step { return part }
    return part(number)
  }

  /// Ends the reading ahead.
  func stop() {
    state.signal { state in
      state.isStopped = true
      state.read = [:]
    }
  }
}
