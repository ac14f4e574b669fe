import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Sandboxes whose seccomp filter refuses unknown calls, as the filters of containers do: `openat2`
/// and `renameat2`.
@Suite(.blocking) struct SandboxTests {
  private static let errors: [Errno] = [.notPermitted, .accessDenied, .notImplemented]

  private let stage: Stage

  init() throws { stage = try Stage() }

  /// Runs lines of a shell in a sandbox; nil where there is none.
  private func sandboxed(
    _ script: String, _ error: Errno, as user: UInt32? = nil
  ) throws -> ProcessOutcome? {
    var job = PeerJob.sandboxed(error: error.rawValue, ["sh", "-c", script])
    if let user { job = .as(user: user, group: user, job) }
    let outcome = try stage.run(
      "\"$PEER\" \"$JOB\"",
      environment: [
        "PEER=\(PeerJob.program)", "JOB=\(job.arguments[0])",
        "WORMHOLE_ROOT=\(stage.directory.path)/groups",
      ])
    guard outcome.status == .exited(77), outcome.errors.isEmpty else { return outcome }
    skip("a sandbox", because: "this process may not begin one")
    return nil
  }

  @Test(.notSanitized("the commands run in processes of their own"), arguments: errors)
  func whatASandboxRefusesIsDoneWithout(_ error: Errno) throws {
    let script = """
      set -e
      wormhole put speed 1 --type json && wormhole put speed 2 --type json --power
      wormhole update speed --add 1
      wormhole get speed
      wormhole remove channel speed
      wormhole --group cinema put film Metropolis && wormhole --group cinema get film
      wormhole defaults write s rows 3 && wormhole defaults read s rows
      wormhole lock build -- echo locked
      wormhole send --to till seat && wormhole receive --as till --count 1
      echo text >film && wormhole send --to till --file film
      mkdir in && wormhole receive --as till --files in --count 1
      wormhole coordinate write file -- sh -c 'echo text >file' && cat file
      wormhole doctor
      """
    guard let outcome = try sandboxed(script, error) else { return }
    #expect(outcome.status == .exited(0))
    #expect(outcome.errors == "")
    let lines = outcome.output.split(separator: "\n")
    #expect(
      lines.prefix(8) == ["3", "3", "Metropolis", "3", "locked", "seat", "in/film", "text"])
    #expect(!outcome.output.contains("problem"), "\(outcome.output)")
  }

  /// What is refused of the file is no sandbox's doing, and nothing is done in its place.
  @Test(arguments: errors)
  func whatIsForbiddenIsToldInASandboxToo(_ error: Errno) throws {
    guard Processes.effectiveUser == 0 else {
      skip("a directory that its user may not write to", because: "root may write to any")
      return
    }
    let made = try stage.run(
      """
      chmod 755 . && mkdir -m 777 open && setpriv --reuid 12345 --regid 12345 --clear-groups \
        sh -c 'WORMHOLE_CONTAINER=open/hole wormhole put speed 1 && wormhole put speed 2 \
        && chmod 500 open/hole/channels/speed'
      """, environment: ["WORMHOLE_CONTAINER=open/hole"])
    #expect(made.status == .exited(0), "\(made.errors)")
    let script =
      "WORMHOLE_CONTAINER=open/hole wormhole put speed 3; echo $?; "
      + "WORMHOLE_CONTAINER=open/hole wormhole get speed"
    guard let outcome = try sandboxed(script, error, as: 12345) else { return }
    #expect(outcome.output == "77\n2\n")
    #expect(outcome.errors.contains("permission denied"), "\(outcome.errors)")
  }
}
