import TestSupport
import TestTraits
import Testing
@testable import WormholeSyscalls

@Suite(.blocking) struct ClockTests {
  @Test(
    arguments: [
      ("monotonic           1           0\nboottime            100         5\n", 100_000_000_005),
      ("boottime -2 999999999", -1_000_000_001), ("monotonic 1 2\n", nil), ("", nil),
      ("boottime 1", nil), ("boottime 9223372036854775807 0", nil), ("boottime x 0", nil),
    ] as [(String, Int64?)])
  func anOffsetIsReadAsTheKernelWritesIt(text: String, offset: Int64?) {
    #expect(Clocks.bootOffset(in: text) == offset)
  }

  /// The standard library reads the same clocks of the kernel.
  @Test func theClocksAdvanceAsThoseOfTheStandardLibrary() {
    func advances(_ own: () -> Duration, as clock: some Clock<Duration>) -> Bool {
      let first = (before: clock.now, own: own(), after: clock.now)
      // A wait would use the clock under test.
      while first.after.duration(to: clock.now) < .milliseconds(20) {}
      let last = (before: clock.now, own: own(), after: clock.now)
      let time = last.own - first.own
      return time >= first.after.duration(to: last.before)
        && time <= first.before.duration(to: last.after)
    }
    let isMonotonic = advances(
      { Instant.now - Instant(nanoseconds: 0) }, as: SuspendingClock())
    #expect(isMonotonic)
    let isSinceBoot = advances({ Duration.nanoseconds(Clocks.sinceBoot) }, as: ContinuousClock())
    #expect(isSinceBoot)
  }

  /// Every process of the machine reads the same identifier until the next start.
  @Test func theIdentifierOfTheBootIsThatOfTheKernel() throws {
    let kernel = try run("cat", ["/proc/sys/kernel/random/boot_id"]).output
    #expect(Clocks.bootIdentifier + "\n" == kernel)
  }

  @Test func aTickMoreOrLessIsTheSameStart() throws {
    let status = try #require(ProcessStatus(of: Processes.current))
    for ticks in [status.started - 1, status.started, status.started + 1] {
      #expect(status.started(at: ticks))
    }
    for ticks in [status.started - 2, status.started + 2, 0, .max] {
      #expect(!status.started(at: ticks))
    }
  }
}
