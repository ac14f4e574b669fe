import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// The threads that renew heartbeats: one for all containers of a file system, as long as a
/// container exists.
@Suite(.blocking) struct LeaseKeeperTests {
  /// Each instance has made a change, for which a tenure begins.
  @Test(.notSanitized("the sanitizer has a thread of its own"))
  func aThousandInstancesHaveOneThreadThatEndsWithTheLast() throws {
    let folder = try TemporaryDirectory()
    let lines = try run(.openAgain(folder.path + "/c", times: 1000)).output.split(separator: "\n")
    let threads = lines.compactMap { Int($0) }
    try #require(threads.count == 4, "\(lines)")
    #expect(threads[0] == 1)
    #expect(threads[1] <= 2, "one after the other, while a thread rests")
    #expect(threads[2] <= 2, "twenty at once")
    #expect(threads[3] == 1, "no container is open any more")
  }

  @Test func keepersOfAFileSystemShareAThread() throws {
    weak var kept: LeaseKeeper?
    do {
      let first = LeaseKeeper.keeper(of: .max)
      #expect(LeaseKeeper.keeper(of: .max).shares(with: first))
      #expect(
        !LeaseKeeper.keeper(of: .max - 1).shares(with: first), "another file system may not answer")
      kept = first
    }
    #expect(kept == nil)
  }
}
