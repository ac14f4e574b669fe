import WormholeSyscalls

/// A condition that a test waited for was not met in time.
package struct TooLate: Error, CustomStringConvertible {
  package let description: String
  package init(description: String) { self.description = description }
}

/// How long a test waits for an event that is due at once: long, because machines are busy.
///
/// Where a mechanism is disabled, many events never arrive, and the test has to learn it soon.
package let patience: Duration =
  TestRun.isSanitized ? .seconds(120) : TestRun.isMutant ? .seconds(10) : .seconds(30)

/// Checks again and again until the condition returns a result, or the time limit is over.
///
/// The pauses between two checks start short and grow to a fiftieth of a second.
package func eventually<Result>(
  _ what: String, within time: Duration = patience, _ condition: () throws -> Result?
) throws -> Result {
  var limit = TimeLimit(time)
  let pause = Monitor(())
  var length = Duration.microseconds(100)
  while true {
    // The clock is read first, so that the last check is made after the deadline.
    let isLast = limit.isOver()
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
