import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Waits that end with their event, and with no other one.
@Suite(.blocking) struct AwaitedEventsTests {
  @Test func aWaitWithoutADeadlineLastsUntilTheSignal() throws {
    let monitor = Monitor((isAwaited: false, isSet: false))
    let thread = try Thread("signaller") {
      try? eventually("the wait has begun") { monitor.withLock { $0.isAwaited } }
      monitor.signal { $0.isSet = true }
    }
    let isSet: Bool? = monitor.wait(until: nil) { state in
      state.isAwaited = true
      return state.isSet ? true : nil
    }
    thread.join()
    #expect(isSet == true)
  }

  @Test func aDescriptorIsAwaitedOnlyForWhatWasAskedFor() throws {
    let pipe = try Pipe()
    let (reading, writing) = (pipe.reading.rawValue, pipe.writing.rawValue)
    // There is room for a byte, and no byte.
    var awaited = [WaitEntry(reading), WaitEntry(writing, reads: false, writes: true)]
    let end = Instant.now + patience
    try WaitEntry.wait(for: &awaited, until: end)
    #expect(Instant.now < end, "the room has ended the wait")
    #expect(awaited.allSatisfy { !$0.isReadable && !$0.isOver })
    try pipe.writing.write("x")
    awaited = [WaitEntry(reading, reads: false)]
    try WaitEntry.wait(for: &awaited, until: .now)
    #expect(!awaited[0].isReadable)
    awaited = [WaitEntry(writing), WaitEntry(reading)]
    try WaitEntry.wait(for: &awaited, until: end)
    #expect(!awaited[0].isReadable && awaited[1].isReadable && !awaited[1].isOver)
    #expect(Instant.now < end)
  }

  /// Whatever is awaited, the caller learns that nothing more will come.
  @Test func aDescriptorThatIsClosedEndsEveryWait() throws {
    let end = Instant.now + patience
    for (reads, writes) in [(true, false), (false, true), (false, false)] {
      var awaited = [WaitEntry(CInt.max, reads: reads, writes: writes)]
      try WaitEntry.wait(for: &awaited, until: end)
      #expect(awaited[0].isOver && awaited[0].isReadable)
    }
    #expect(Instant.now < end)
  }

  @Test func aProcessIsNoCopyAndFollowsNoSchedule() {
    #expect(!ProcessCopy.isScheduled)
    #expect(!ProcessCopy.isCopy)
  }
}
