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

  /// Runs a verb whose program refuses each message, until there is a dead letter.
  ///
  /// On a busy machine, the time limit of a run may pass before it has claimed the message.
  @discardableResult func makeDeadLetter(
    of name: String, id: String? = nil, by verb: String
  ) throws -> ProcessOutcome {
    try eventually("a dead letter of '\(name)'") { () -> ProcessOutcome? in
      let outcome = try run("wormhole \(verb) --attempts 1 --timeout 0.5 --quiet --exec 'exit 1'")
      let letters = try run("wormhole queue \(name) --dead | cut -f1").output.split(separator: "\n")
      return letters.contains { id == nil || String($0) == id } ? outcome : nil
    }
  }
}
