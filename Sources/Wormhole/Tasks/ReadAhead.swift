internal import WormholeSyscalls

/// Parts of a long list in order, which the caller and a second thread read.
///
/// Each of the two reads the next part with which the other has not begun. If the thread still
/// reads the part that the caller needs, the caller reads a later part in the meantime. Otherwise
/// the thread would always be a part ahead, and would read the whole list alone. A list is read
/// without the thread, too: if the list is short, or if no thread is free.
final class ReadAhead<Part: Sendable>: Sendable {
  private struct State {
    /// The first part that nobody has begun to read.
    var next = 0
    /// How many parts the caller has taken.
    var taken = 0
    /// Parts that were read and not taken yet.
    var read: [Int: Part] = [:]
    var isStopped = false

    /// Begins with the next part; nil as long as there is no room for it.
    mutating func begin() -> Int? {
      guard next - taken < ReadAhead.window else { return nil }
      next += 1
      return next - 1
    }
  }

  private enum Step {
    /// The caller reads this part.
    case own(Int)
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
      return state.begin().map { .some($0) }
    }
    return number ?? nil
  }

  /// Returns the next part; nil after the last one.
  func next() -> Part? {
    let wanted = state.withLock { $0.taken }
    guard wanted < parts else { return nil }
    defer { state.signal { $0.taken += 1 } }
    while true {
      switch advance(to: wanted) {
      case .read(let part): return part
      case .own(wanted): return part(wanted)
      case .own(let later):
        let part = part(later)
        state.withLock { $0.read[later] = part }
      }
    }
  }

  /// Returns the part that the caller needs, or the number of the part that the caller reads now.
  private func advance(to wanted: Int) -> Step {
    let step = state.wait(until: nil) { state -> Step? in
      if let part = state.read.removeValue(forKey: wanted) { return .read(part) }
      guard state.next < parts, let number = state.begin() else { return nil }
      return .own(number)
    }
    // The wait of a forked child ends at once.
    return step ?? .own(wanted)
  }

  /// Ends the reading ahead.
  func stop() {
    state.signal { state in
      state.isStopped = true
      state.read = [:]
    }
  }
}
