internal import SharedContainer
internal import Syscalls

/// A call that is declared without `throws`, and whose caller cannot ask what has come of it.
package enum SilentCall {
  /// The longest pause before it is tried once more: all of them together take 63 milliseconds.
  private static let longest = Duration.milliseconds(32)

  /// What came of it; nil if it has failed, of which ``DropInLog`` is told.
  ///
  /// Descriptors, for one, may be there again in a moment. Whoever takes a value that could not be
  /// read for none may count on from nothing, and write that.
  @discardableResult
  package static func attempt<Result>(_ body: () throws -> Result) -> Result? {
    var pause = Duration.milliseconds(1)
    while true {
      do {
        return try body()
      } catch {
        guard (error as? WormholeError)?.mayPass == true, pause <= longest else {
          DropInLog.tell(.error, error)
          return nil
        }
        let _: Void? = Monitor(()).wait(until: .now + pause) { _ in nil }
        pause *= 2
      }
    }
  }
}
