import SharedContainer
import Syscalls
import TestSupport
import TestTraits
import Testing
import Wormhole

/// The async overloads of rarely called functions, and the threads that run async overloads.
@Suite struct AsyncTwinTests {
  private let meeting: Meeting
  private var hole: Wormhole { meeting.hole }

  init() throws { meeting = try Meeting.patient() }

  /// The kernel's name for this thread.
  private static var threadName: String {
    let file = try? Descriptor.open(path: "/proc/thread-self/comm", [.readOnly])
    return String(decoding: (try? file?.contents()) ?? [], as: UTF8.self)
      .split(separator: "\n").first.map(String.init) ?? ""
  }

  /// Neither a thread of the cooperative pool nor the caller's thread: the call may block.
  @Test func aTwinRunsOnAThreadOfTheModulesOwn() async throws {
    let names = Heard<String>()
    let number = hole.channel("number", of: Int.self)
    try await number.update { _ in names.add(Self.threadName) }
    try await hole.defaults("app").update { _ in names.add(Self.threadName) }
    try await hole.lock("till").hold { () async in names.add("held") }
    #expect(names.all == ["wormhole-call", "wormhole-call", "held"])
    // A caller without `await` runs the body on its own thread.
    _ = try { try number.update { _ in names.add(Self.threadName) } }()
    #expect(names.all.last != "wormhole-call")
  }

  @Test func aRemovalWaitsForTheLockAndCanBeCancelled() async throws {
    try await hole.channel("number").put(1)
    try await hole.defaults("app").set(1, forKey: "one")
    let (hole, lock) = (hole, try HeldLock(of: "number", in: meeting))
    let removal = Task { try await hole.removeChannel("number") }
    try await lock.waitForWaiter()
    removal.cancel()
    do {
      _ = try await removal.value
      Issue.record("it was cancelled")
    } catch WormholeError.Code.cancelled {
    }
    #expect(lock.isHeld)
    lock.release()
    #expect(try hole.channels() == ["number"])
    #expect(try await hole.removeChannel("number"))
    #expect(try await !hole.removeChannel("number"))
    #expect(try hole.channels() == [])
    #expect(try await hole.removeDefaults("app"))
    #expect(try await !hole.removeDefaults("app"))
  }

  @Test func aMemberIsRemovedAndAGuestComesAndGoes() async throws {
    let member = try await hole.join(as: "watch")
    await #expect(throws: WormholeError.self) { try await hole.removeMember("watch") }
    try await member.registerLaunch(program: "/bin/true")
    try await hole.registerLaunch(of: "printer", program: "/bin/true")
    #expect(try hole.launchCommand(of: "watch")?.program == "/bin/true")
    await member.leave()
    #expect(try await hole.removeMember("watch"))
    #expect(try await !hole.removeMember("watch"))
    let guest = try await hole.guest()
    try await guest.peer("printer").send(1, .quick())
    await guest.leave()
    let gone = Task {
      try await hole.guest()
    }
    gone.cancel()
    _ = try? await gone.value
    await hole.close()
    #expect(throws: WormholeError.self) { try hole.channel("number", of: Int.self).watch { _ in } }
  }

  @Test func aFileThatIsTakenElsewhereStaysIfTheTaskIsCancelled() async throws {
    guard let memory = try AnotherFileSystem() else { return }
    let files = try FilePair()
    try files.make("film", size: 3_000_000)
    _ = try await files.phone.send(file: files.path("film"))
    let (gate, names) = (Gate(), Heard<String>())
    let taken = memory.path + "/film"
    for try await message in files.watch.deliveries(acknowledging: .explicit) {
      let file = try #require(message.file)
      let taking = Task {
        try await file.move(to: taken) { _ in
          names.add(Self.threadName)
          gate.pass()
          return .continue
        }
      }
      try await gate.somebodyComes()
      taking.cancel()
      gate.open()
      do {
        try await taking.value
        Issue.record("it was cancelled")
      } catch WormholeError.Code.cancelled {
      }
      #expect(try memory.names() == [] && file.exists)
      try await file.move(to: taken)
      try message.acknowledge()
      break
    }
    #expect(try Digest(taken) == Digest(files.path("film")))
    #expect(Set(names.all) == ["wormhole-call"])
  }
}

// MARK: Compilation

/// The test is the compilation: Swift selects the async overload where the caller is asynchronous,
/// and the blocking overload in `defer`, in closures and in synchronous functions.
@MainActor private final class Desk {
  private let hole: Wormhole
  private var taken = 0

  init(_ hole: Wormhole) { self.hole = hole }

  func serve(_ file: Wormhole.ReceivedFile?) async throws {
    let guest = try await hole.guest()
    defer { guest.leave() }
    try await file?.move(to: "nowhere/\(taken)") { _ in .cancel }
    taken += try await hole.removeChannel("a") ? 1 : 0
    try await hole.removeDefaults("a")
    try await hole.removeMember("a")
    let removed = try ["b", "c"].map { try hole.removeChannel($0) }
    taken += removed.count
  }

  func serveAtOnce(_ file: Wormhole.ReceivedFile?) throws {
    let guest = try hole.guest()
    try file?.move(to: "nowhere/\(taken)") { [taken] _ in taken > 0 ? .continue : .cancel }
    try hole.removeMember("a")
    guest.leave()
    hole.close()
  }
}

extension AsyncTwinTests {
  @Test func callersOfRareCallsCompile() async throws {
    let desk = await Desk(hole)
    try await desk.serve(nil)
    try await desk.serveAtOnce(nil)
  }
}
