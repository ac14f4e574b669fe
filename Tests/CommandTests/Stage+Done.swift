import TestSupport
import Testing
import WormholeSyscalls

extension Stage {
  /// Returns the output of a command, which must succeed.
  @discardableResult func done(_ command: String) throws -> String {
    let outcome = try run(command)
    #expect(outcome.status == .exited(0), "\(command): \(outcome.errors)\(outcome.output)")
    return outcome.output
  }
}
