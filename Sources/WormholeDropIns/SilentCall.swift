internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A call that is declared without `throws`, and whose caller cannot query its result.
package enum SilentCall {
  /// The longest pause before another attempt: all pauses together take 63 milliseconds.
  private static let longest = Duration.milliseconds(32)

  /// Returns the result of the body; nil if the body has failed, which ``DropInLog`` reports.
  ///
  /// A temporary shortage, of descriptors for example, may end within a moment. A caller that
  /// mistakes an unreadable value for a missing value might continue from nothing, and write the
  /// result.
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
        Thread.pause(pause)
        pause *= 2
      }
    }
  }
}
