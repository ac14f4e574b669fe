internal import WormholeSyscalls

/// The output that a program writes to a terminal, copied to a file by a thread.
///
/// The kernel stores a few kilobytes of a terminal's output and then suspends the program's write,
/// so the thread reads at all times. Reading ends once no process has the program's end open; a
/// child process of the program may keep that end open after the program's end.
///
/// What the program has written before its end must be in the file before a test is notified of the
/// end: the thread that waits for the program calls ``drain()`` in between. A read that finds
/// nothing lets the kernel first move all that was written to where it can be read.
final class TerminalOutput: Sendable {
  private let copier: Copier
  private let thread: Thread

  init(_ terminal: PseudoTerminal, copyingTo file: consuming Descriptor) throws(Errno) {
    let copier = try Copier(terminal, file)
    self.copier = copier
    thread = try Thread("test output") { copier.run() }
  }

  deinit {
    copier.request { $0.isClosed = true }
    thread.join()
  }

  /// Returns once all that was written before the call is in the file.
  func drain() {
    copier.request { $0.isDraining = true }
    _ = copier.state.wait(until: nil) { $0.isDrained ? true : nil }
  }

  /// The error after which the file lacks output.
  var failure: Errno? { copier.state.withLock { $0.failure } }
}

/// The state of the thread, which the object does not own: the thread outlives a failed start.
private final class Copier: Sendable {
  struct State {
    var isDraining = false
    var isDrained = false
    var isClosed = false
    var failure: Errno?
  }

  /// The result of reading until there is nothing to read.
  private enum ReadResult { case nothingLeft, tooMuch, end }

  let state = Monitor(State())
  private let terminal: PseudoTerminal
  private let file: Descriptor
  private let events: WaitSet
  private let wake: WakeDescriptor

  init(_ terminal: PseudoTerminal, _ file: consuming Descriptor) throws(Errno) {
    self.terminal = terminal
    self.file = file
    events = try WaitSet()
    wake = try WakeDescriptor()
    try events.add(terminal.own, as: 0)
    try events.add(wake.descriptor, as: 1)
  }

  func request(_ change: (inout State) -> Void) {
    state.withLock(change)
    wake.raise()
  }

  func run() {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 1)
    defer { buffer.deallocate() }
    do throws(Errno) {
      while true {
        wake.lower()
        let before = state.withLock { ($0.isDraining, $0.isClosed) }
        if before.1 { return }
        let reading = try read(buffer)
        if before.0 || reading == .end { state.signal { $0.isDrained = true } }
        switch reading {
        case .nothingLeft: _ = try events.wait(until: nil)
        case .tooMuch: break
        case .end: return
        }
      }
    } catch {
      state.signal {
        $0.failure = $0.failure ?? error
        $0.isDrained = true
      }
    }
  }

  /// Reads until nothing is left, or more has been read than the kernel ever stores: the program's
  /// children may write without end.
  private func read(_ buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> ReadResult {
    var total = 0
    while total < 1 << 20 {
      let count: Int
      do throws(Errno) {
        count = try terminal.own.read(into: buffer)
      } catch .wouldBlock {
        return .nothingLeft
      } catch .inputOutput {
        return .end
      }
      if count == 0 { return .end }
      total += count
      write(buffer.bytes.extracting(..<count))
    }
    return .tooMuch
  }

  /// Output that the file does not take is read nevertheless, so that the program continues.
  private func write(_ bytes: RawSpan) {
    guard state.withLock({ $0.failure == nil }) else { return }
    do throws(Errno) {
      try file.writeFully(bytes)
    } catch {
      state.withLock { $0.failure = error }
    }
  }
}
