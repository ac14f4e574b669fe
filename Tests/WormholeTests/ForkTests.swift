import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// Programs that fork during the use of a container.
@Suite(.blocking, .notSanitized("a copy of a process with threads may hang in its code"))
struct ForkTests {
  private let folder: TemporaryDirectory
  private let path: String

  init() throws {
    folder = try TemporaryDirectory()
    path = folder.path + "/c"
  }

  /// Twenty children, each forked while eight threads work, find that the inherited objects belong
  /// to the parent, drop these objects, and start again; a last child only lives.
  @Test func aCopyHasNothingAndTakesNothing() throws {
    let parent = try Running(.forkBusy(path, copies: 20))
    let copy = try eventually("all copies have done", within: .seconds(60)) { () -> Int32? in
      if try parent.child.poll() != nil { Issue.record("\(try parent.errors)") }
      return try parent.output.split(separator: "\n").compactMap { Int32($0) }.first
    }
    defer { try? Processes.send(.kill, to: copy) }
    try eventually("it has dropped everything") { try Processes.state(copy) == "S" }
    try expect(isAlive: true)
    #expect(try isOpen())

    try parent.child.send(.kill)
    _ = try parent.outcome()
    try expect(isAlive: false)
    #expect(try !isOpen())
    let state = try Processes.state(copy)
    #expect(state != nil && state != "Z", "it lives, and that does not matter")
  }

  /// Checks the locks and folders of the parent process.
  private func expect(isAlive: Bool) throws {
    let container = try Container.open(path, options: .testing())
    #expect(try container.names(in: .guests).count == (isAlive ? 1 : 0))
    #expect(try container.existingMember("phone")?.isPresent() == isAlive)
    let patience = Patience(until: .now + (isAlive ? .milliseconds(50) : .seconds(20)))
    let held = try container.slot(.system, "held")
    if isAlive {
      #expect(throws: WormholeError.self) { try held.hold("hold", patience: patience) { _ in } }
      return
    }
    _ = try held.hold("hold", patience: patience) { _ in }
    for index in 0..<4 {
      let slot = try container.slot(.channels, "k\(index)")
      try slot.change("update", policy: LockPolicy(lease: nil, cap: nil), patience: patience) {
        _ in .none
      }
    }
    #expect(container.counters.takeovers == 0)
  }

  /// Whether a process other than the test's has the container open.
  private func isOpen() throws -> Bool {
    let marker = try Descriptor.open(path: path + "/container.plist", [.readOnly])
    return try marker.isPresenceLockedOrShared()
  }
}
