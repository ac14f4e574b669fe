import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The view of a forked child on objects that were made before the fork.
@Suite(.blocking, .notSanitized("a copy of a process with threads may hang in its code"))
struct ProcessCopyTests {
  @Test func aProcessIsOne() throws {
    let before = ProcessCopy.current
    #expect(before.isCurrent)
    let others = Monitor<[ProcessCopy]>([])
    let threads = try (0..<4).map { _ in
      try Thread("asking") { others.withLock { $0.append(.current) } }
    }
    for thread in threads { thread.join() }
    #expect(others.withLock { $0 } == Array(repeating: before, count: 4))
    let one = OneForEachProcess { Monitor(0) }
    #expect(one.existing == nil)
    #expect(one.current === one.current)
    #expect(one.existing === one.current)
  }

  /// By fork and by a bare clone, and where the kernel wipes no memory.
  @Test(arguments: [PeerJob.Copying.fork, .clone, .unwiped])
  func aCopyHasNothingOfWhatItInherits(_ how: PeerJob.Copying) throws {
    let folder = try TemporaryDirectory()
    try folder.write("kept", to: "file")
    let outcome = try run(.inherit(folder.path, by: how))
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let copy = """
      another process
      reading: EOWNERDEAD
      locking: EOWNERDEAD
      giving back: EOWNERDEAD
      removing: EOWNERDEAD
      duplicating: EOWNERDEAD
      a lock that was held: free
      a wait for what never comes: ended
      a call of its queue
      one of its own
      its purpose

      """
    #expect(outcome.output == copy + "the process\nthe copy's copy: another process\n")
    #expect(try folder.descriptor.names() == ["file"])
  }
}
