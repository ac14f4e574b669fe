import WormholeContainerStorage
import TestTraits
import Testing

/// A cycle of programs that wait for each other is found by the program that arrives last.
@Suite(.blocking) struct AccessRingTests {
  /// Each program has a path of its own and wants the next program's path, in a separate container.
  private struct World {
    let count: Int
    var waiting: Set<Int> = []

    /// What one of them sees.
    func seen() -> WaitCycle {
      let running = (0..<count).map { index in
        WaitCycle.Seen(
          "\(index)", "runs", stamp: 1, isWaiting: false, claim(index, of: "runs \(index)"))
      }
      let wanting = waiting.map { index in
        let next = (index + 1) % count
        return WaitCycle.Seen(
          "\(next)", "waits", stamp: 2, isWaiting: true, claim(next, of: "waits \(index)"),
          held: [("\(index)", "runs")])
      }
      return WaitCycle(running + wanting)
    }

    func claim(_ path: Int, of purpose: String) -> AccessClaim {
      AccessClaim([.init(AccessPath("/\(path)"), writes: true)], purpose: purpose)
    }
  }

  /// Tries every order in which the programs arrive and check; returns in how many orders no
  /// program finds the cycle.
  private func unseen(_ count: Int, looksFirst: Bool) -> Int {
    func go(_ world: World, _ arrived: Set<Int>, _ looked: Set<Int>, _ isSeen: Bool) -> Int {
      if arrived.count == count, looked.count == count { return isSeen ? 0 : 1 }
      var found = 0
      for index in 0..<count {
        if !arrived.contains(index), !looksFirst || looked.contains(index) {
          var next = world
          next.waiting.insert(index)
          found += go(next, arrived.union([index]), looked, isSeen)
        }
        if !looked.contains(index), looksFirst || arrived.contains(index) {
          // A program that checks before it arrives counts itself as waiting.
          var view = world
          view.waiting.insert(index)
          let closes = view.seen().closes(at: "\((index + 1) % count)", "waits")
          found += go(world, arrived, looked.union([index]), isSeen || closes)
        }
      }
      return found
    }
    return go(World(count: count), [], [], false)
  }

  @Test(arguments: [2, 3]) func somebodySeesIt(_ count: Int) {
    #expect(unseen(count, looksFirst: false) == 0)
  }

  @Test(arguments: [2, 3]) func whoeverLooksBeforeItArrivesMissesIt(_ count: Int) {
    #expect(unseen(count, looksFirst: true) > 0)
  }

  @Test func aChainIsNoRing() {
    var world = World(count: 3)
    world.waiting = [0, 1]
    for index in [0, 1] { #expect(!world.seen().closes(at: "\(index + 1)", "waits")) }
  }

  /// An access runs, a second one inside it waits, and a third one waits for both.
  @Test func anAccessDoesNotWaitForALaterAccess() {
    func claim(_ paths: [String], _ purpose: String) -> AccessClaim {
      AccessClaim(paths.map { .init(AccessPath($0), writes: true) }, purpose: purpose)
    }
    func ring(_ stamp: UInt64) -> WaitCycle {
      WaitCycle([
        .init("0", "runs", stamp: 1, isWaiting: false, claim(["/a"], "one")),
        .init("0", "waits", stamp: 3, isWaiting: true, claim(["/b"], "one"), held: [("0", "runs")]),
        .init("0", "other", stamp: stamp, isWaiting: true, claim(["/a", "/b"], "other")),
      ])
    }
    #expect(ring(2).closes(at: "0", "waits"), "it came before, and waits for what runs")
    #expect(!ring(4).closes(at: "0", "waits"), "it came later, and is waited for by nobody")
  }
}
