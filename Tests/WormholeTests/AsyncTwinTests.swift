import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The async overloads of rarely called functions, and the threads that run async overloads.
@Suite struct AsyncTwinTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

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
    let number = container.channel("number", of: Int.self)
    try await number.update { _ in names.add(Self.threadName) }
    try await container.defaults("app").update { _ in names.add(Self.threadName) }
    try await container.lock("till").hold { () async in names.add("held") }
    #expect(names.all == ["wormhole-call", "wormhole-call", "held"])
    // A caller without `await` runs the body on its own thread.
    _ = try { try number.update { _ in names.add(Self.threadName) } }()
    #expect(names.all.last != "wormhole-call")
  }

  @Test func aRemovalWaitsForTheLockAndCanBeCancelled() async throws {
    try await container.channel("number").put(1)
    try await container.defaults("app").set(1, forKey: "one")
    let (container, lock) = (container, try HeldLock(of: "number", in: meeting))
    let removal = Task { try await container.removeChannel("number") }
    try await lock.waitForWaiter()
    removal.cancel()
    do {
      _ = try await removal.value
      Issue.record("it was cancelled")
    } catch WormholeError.Code.cancelled {
    }
    #expect(lock.isHeld)
    lock.release()
    #expect(try container.channels() == ["number"])
    #expect(try await container.removeChannel("number"))
    #expect(try await !container.removeChannel("number"))
    #expect(try container.channels() == [])
    #expect(try await container.removeDefaults("app"))
    #expect(try await !container.removeDefaults("app"))
  }

  @Test func aMemberIsRemovedAndAGuestComesAndGoes() async throws {
    let member = try await container.join(as: "watch")
    await #expect(throws: WormholeError.self) { try await container.removeMember("watch") }
    try await member.registerLaunch(program: "/bin/true")
    try await container.registerLaunch(of: "printer", program: "/bin/true")
    #expect(try container.launchCommand(of: "watch")?.program == "/bin/true")
    await member.leave()
    #expect(try await container.removeMember("watch"))
    #expect(try await !container.removeMember("watch"))
    let guest = try await container.guest()
    try await guest.peer("printer").send(1, .quick())
    await guest.leave()
    let gone = Task {
      try await container.guest()
    }
    gone.cancel()
    _ = try? await gone.value
    await container.close()
    #expect(throws: WormholeError.self) {
      try container.channel("number", of: Int.self).watch { _ in }
    }
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
  private let container: SharedContainer
  private var taken = 0

  init(_ container: SharedContainer) { self.container = container }

  func serve(_ file: ReceivedFile?) async throws {
    let guest = try await container.guest()
    defer { guest.leave() }
    try await file?.move(to: "nowhere/\(taken)") { _ in .cancel }
    taken += try await container.removeChannel("a") ? 1 : 0
    try await container.removeDefaults("a")
    try await container.removeMember("a")
    let removed = try ["b", "c"].map { try container.removeChannel($0) }
    taken += removed.count
  }

  func serveAtOnce(_ file: ReceivedFile?) throws {
    let guest = try container.guest()
    try file?.move(to: "nowhere/\(taken)") { [taken] _ in taken > 0 ? .continue : .cancel }
    try container.removeMember("a")
    guest.leave()
    container.close()
  }
}

extension AsyncTwinTests {
  @Test func callersOfRareCallsCompile() async throws {
    let desk = await Desk(container)
    try await desk.serve(nil)
    try await desk.serveAtOnce(nil)
  }
}
