import Syscalls
import TestSupport
import TestTraits
import Testing

@testable import SharedContainer

/// What is kept in memory goes when what has made it true has gone.
@Suite(.blocking) struct OldKnowledgeTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let slot: Slot

  init() throws { (folder, container, slot) = try Container.forTest(holding: 2) }

  /// The same, to locks and watches another process.
  private func another() throws -> Container {
    try Container.open(container.path, options: .testing())
  }

  private func remove(_ names: String...) throws {
    let path = container.path(names.joined(separator: "/"))
    #expect(try run("rm", ["-r", path]).status == .exited(0))
  }

  /// Its thread stands in the kernel's queue still, and would take the lock for nobody.
  @Test func whoeverFailsInWaitingForALockTakesItNoMore() throws {
    let holding = try Holding(another().slot(.channels, "n"))
    let rule = FaultRule(.fstatat, path: "n/lock/2", .fail(.inputOutput))
    FaultPoints.with([rule]) {
      let error = #expect(throws: WormholeError.self) { try slot.add() }
      #expect(error?.errno == Errno.inputOutput.rawValue)
    }
    try holding.end()
    let held = try another().slot(.channels, "n")
      .hold("hold", patience: Patience(until: .now + patience)) { $0 }
    #expect(held.result == 1)
  }

  /// Where one thread could not be had, the next tenure tries again.
  @Test func marksAreRenewedAgainOnceThereAreThreads() throws {
    let tries = Monitor(0)
    let leases = LeaseKeeper { body throws(Errno) in
      let isFirst = tries.withLock { tries in
        tries += 1
        return tries == 1
      }
      if isFirst { throw .wouldBlock }
      try Thread("wormhole-lease", body).detach()
    }
    try folder.write("", to: "mark")
    let file = try Descriptor.open(path: folder.path + "/mark", [.readWrite])
    let mark = HolderMark(of: .current)
    for _ in 0..<2 {
      let tenure = leases.begin(
        mark, in: file, lease: .milliseconds(40), cap: nil, at: .now)
      defer { _ = leases.end(tenure) }
      guard tries.withLock({ $0 }) == 2 else { continue }
      try eventually("it is renewed") { try HolderMark(in: file).renewals > 0 }
    }
    #expect(tries.withLock { $0 } == 2)
  }
}
