import SharedContainer
import Syscalls
import TestSupport
import TestTraits
import Testing

/// The epoch rises with each start of the machine, whoever notices it first.
@Suite(.blocking) struct EpochTests {
  private let folder: TemporaryDirectory
  private let path: String

  init() throws {
    folder = try TemporaryDirectory()
    path = folder.path + "/c"
  }

  private static func options(boot: String) -> ContainerOptions {
    var options = ContainerOptions.testing()
    options.environment.bootIdentifier = { boot }
    return options
  }

  @Test func staysWhileTheMachineRuns() throws {
    for _ in 0..<3 {
      #expect(try Container.open(path, options: Self.options(boot: "a")).epoch == 1)
    }
  }

  @Test func risesOnceAStart() throws {
    let first = try Container.open(path, options: Self.options(boot: "a"))
    for (boot, epoch) in [("b", 2), ("b", 2), ("c", 3)] {
      let container = try Container.open(path, options: Self.options(boot: boot))
      #expect(container.epoch == epoch)
      #expect(container.id == first.id)
    }
  }

  @Test func risesOnceHoweverManyNotice() throws {
    _ = try Container.open(path, options: Self.options(boot: "a"))
    let path = path
    let seen = Monitor<[Int]>([])
    let threads = try (0..<8).map { _ in
      try Thread("opener") {
        let epoch = try? Container.open(path, options: Self.options(boot: "b")).epoch
        seen.signal { $0.append(epoch ?? -1) }
      }
    }
    for thread in threads { thread.join() }
    #expect(seen.withLock { $0 } == Array(repeating: 2, count: 8))
  }

  @Test func withoutANameForTheRunItStays() throws {
    #expect(try Container.open(path, options: Self.options(boot: "a")).epoch == 1)
    #expect(try Container.open(path, options: Self.options(boot: "")).epoch == 1)
  }
}
