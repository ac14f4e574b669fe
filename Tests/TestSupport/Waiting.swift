import Syscalls

/// What a test waited for did not come in time.
package struct TooLate: Error, CustomStringConvertible {
  package let description: String
  package init(description: String) { self.description = description }
}

/// How long a test waits for what should come at once: long, because machines are busy.
///
/// Where a mechanism is taken out much never comes, and that is to be known soon.
package let patience: Duration =
  TestRun.isSanitized ? .seconds(120) : TestRun.isMutant ? .seconds(10) : .seconds(30)

/// Looks again and again until the condition answers something, or the deadline has passed.
///
/// The pauses between two looks start short and grow to a fiftieth of a second.
package func eventually<Result>(
  _ what: String, within time: Duration = patience, _ condition: () throws -> Result?
) throws -> Result {
  let deadline = Instant.now + time
  let pause = Monitor(())
  var length = Duration.microseconds(100)
  while true {
    // The clock is read first, so that the last look comes after the deadline.
    let isLast = Instant.now >= deadline
    if let result = try condition() { return result }
    if isLast { throw TooLate(description: "\(what): not within \(time)") }
    let _: Void? = pause.wait(until: Instant.now + length) { _ in nil }
    length = min(length * 2, .milliseconds(20))
  }
}

/// As ``eventually(_:within:_:)-(_,_,()->Result?)``, for a condition that is true or false.
package func eventually(
  _ what: String, within time: Duration = patience, _ condition: () throws -> Bool
) throws {
  try eventually(what, within: time) { try condition() ? () : nil }
}
