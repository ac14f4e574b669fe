import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The command on a container that is shared by a group.
@Suite(.blocking, .notSanitized("about what a command prints"))
struct GroupSharedTests {
  @Test func itIsOpenedWhenItIsAskedFor() throws {
    let stage = try Stage()
    let made = try stage.run(
      "wormhole put speed 1 --group-shared && wormhole --group-shared get speed")
    #expect(made.output == "1\n", "\(made.errors)")
    let mode = try stage.run("stat -c %a hole hole/channels").output
    #expect(mode == "2770\n2770\n")
    let refused = try stage.run("wormhole get speed")
    #expect(refused.status == .exited(77))
    #expect(refused.errors.contains("the container is shared by a group"), "\(refused.errors)")
    #expect(refused.errors.contains("--group-shared"))
  }

  @Test func noModeIsAdvisedWhereThereIsNoContainer() throws {
    let stage = try Stage()
    let outcome = try stage.run("mkdir -m 1777 open; wormhole --container open put speed 1")
    #expect(outcome.status == .exited(77))
    #expect(!outcome.errors.contains("chmod"), "\(outcome.errors)")
  }
}
