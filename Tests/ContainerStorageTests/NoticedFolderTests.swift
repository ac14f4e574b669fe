import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// One watch for each folder, whether the listener has a worker or takes each notice at once.
@Suite(.blocking) struct NoticedFolderTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  private func add(_ name: String, to directory: borrowing Descriptor) throws {
    _ = try directory.open(name, [.writeOnly, .create], mode: 0o600)
  }

  @Test func aFolderIsWatchedOnce() throws {
    let directory = try folder.make("d")
    let (starts, told, noticed) = (Heard<Int>(), Heard<WatchSignal>(), NoticedFolder())
    for start in 1...2 {
      try noticed.begin { _ throws(Errno) in
        starts.add(start)
        return try Watcher.shared.watch(directory, .created) { told.add($0) }
      }
    }
    #expect(starts.all == [1])
    try add("a", to: directory)
    try told.wait("a notice") { !$0.isEmpty }
    #expect(told.all == [.changed(["a"])])
    noticed.stop()
    #expect(!noticed.isActive)
    let hasNone = noticed.withWatch { $0 == nil }
    #expect(hasNone)
  }

  /// A watch on an open directory has no end of its own: it would last as long as the process.
  @Test func aReleasedFolderEndsItsWatch() throws {
    let directory = try folder.make("d")
    let (released, later) = (Heard<WatchSignal>(), Heard<WatchSignal>())
    var noticed: NoticedFolder? = NoticedFolder()
    try noticed?.begin { _ throws(Errno) in
      try Watcher.shared.watch(directory, .created) { released.add($0) }
    }
    // Notified after the first listener.
    let watch = try Watcher.shared.watch(directory, .created) { later.add($0) }
    noticed = nil
    try add("a", to: directory)
    try later.wait("a notice") { !$0.isEmpty }
    #expect(released.all.isEmpty)
    watch.stop()
  }

  @Test func aHandlerPassesALossOnToTheWorker() throws {
    let directory = try folder.make("d")
    let (runs, worker) = (Heard<WatchSignal>(), Worker())
    let noticed = NoticedFolder(worker)
    worker.begin { [weak noticed] in
      if let noticed { runs.add(noticed.take()) }
    }
    try noticed.begin { relist throws(Errno) in
      try Watcher.shared.watch(directory, .created) { _ in relist(.lookAgain) }
    }
    try add("a", to: directory)
    try runs.wait("a listing") { $0.contains(.lookAgain) }
    noticed.stop()
    worker.end()
  }
}
