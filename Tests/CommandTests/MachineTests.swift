import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Programs of one machine that see different facts about it, as in containers.
@Suite(.blocking, .notSanitized("about what a command prints")) struct MachineTests {
  /// Runs a command as if the machine had been started eleven days earlier.
  private static let later = "unshare --time --boottime 1000000 --monotonic 1000000"

  /// Runs the body if this machine meets the needs of the test.
  private func ifPossible(_ stage: Stage, _ what: String, _ body: () throws -> Void) throws {
    guard try stage.run("\(Self.later) true").status == .exited(0) else {
      return skip(what, because: "time namespaces take a kernel that has them, root and unshare(1)")
    }
    try body()
  }

  @Test func messagesFromTimeNamespacesKeepTheirOrder() throws {
    let stage = try Stage()
    try ifPossible(stage, "messages from time namespaces") {
      for number in 1...6 {
        let there = number % 2 == 0 ? Self.later : ""
        let sent = try stage.run("\(there) wormhole send --to watch \(number)")
        #expect(sent.status == .exited(0), "\(sent.errors)")
      }
      for there in ["", Self.later] {
        let received = try stage.run("\(there) wormhole receive --as watch --count 3 --timeout 20")
        let numbers = received.output.split(separator: "\n")
        #expect(
          numbers == (there.isEmpty ? ["1", "2", "3"] : ["4", "5", "6"]), "\(received.errors)")
      }
    }
  }

  @Test func requestsPassBetweenTimeNamespaces() throws {
    let stage = try Stage()
    try ifPossible(stage, "requests between time namespaces") {
      for (here, there) in [("", Self.later), (Self.later, "")] {
        // A member that has joined may not have its handler yet.
        let replier = try stage.start(
          "\(there) wormhole reply --as watch --verbose --count 1 --exec cat")
        try eventually("it replies") { try replier.errors.contains("replying as 'watch'") }
        let answer = try stage.run("\(here) wormhole request --to watch --timeout 20 it")
        #expect(answer.output == "it\n", "\(answer.errors)")
        #expect(try replier.outcome().status == .exited(0))
      }
    }
  }

  @Test func aStoppedMemberIsSeenToBeStoppedInAnotherTimeNamespace() throws {
    let stage = try Stage()
    try ifPossible(stage, "a stopped member, seen from a time namespace") {
      let member = try stage.start("wormhole reply --as watch --exec cat")
      try eventually("it has joined") {
        try stage.run("wormhole members").output.contains("\trunning\t")
      }
      try member.child.send(.stop)
      try member.waitUntilStopped()
      for there in ["", Self.later] {
        let members = try stage.run("\(there) wormhole members").output
        #expect(members.contains("\tstopped\t"), "\(there): \(members)")
      }
      try member.child.send(.kill)
    }
  }
}
