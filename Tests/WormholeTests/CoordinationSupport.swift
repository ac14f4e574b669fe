import SharedContainer
import Syscalls
import TestSupport
import Testing
import Wormhole

/// Files of one test's own, and where the groups lie that order accesses to them.
struct FileScene {
  let folder: TemporaryDirectory
  let arbiters: Arbiters
  private let lease: Duration

  /// - Parameter lease: short where somebody is stopped. Where nobody is, busy machines keep
  ///   processes from showing that they run for longer than that.
  init(lease: Duration = .seconds(1)) throws {
    self.lease = lease
    folder = try TemporaryDirectory()
    try folder.descriptor.makeDirectory("groups", mode: 0o700)
    try folder.descriptor.makeDirectory("files", mode: 0o700)
    arbiters = Arbiters(.testing(lease: lease), root: folder.path + "/groups")
  }

  func path(_ name: String) -> String { "\(folder.path)/files/\(name)" }

  /// A coordinator as another program has it.
  func another(_ purpose: String? = nil, lease: Duration? = nil) -> Wormhole.Coordinator {
    let options = ContainerOptions.testing(lease: lease ?? self.lease)
    return Wormhole.Coordinator(
      purpose: purpose, Arbiters(options, root: folder.path + "/groups"))
  }

  func peer(
    _ kind: PeerJob.Coordination, _ path: String, _ inside: PeerJob.Inside,
    takeOverAfterMilliseconds milliseconds: Int? = nil, environment: [String] = []
  ) throws -> Running {
    try Running(
      .coordinate(kind, path, inside, takeOverAfterMilliseconds: milliseconds),
      environment: ["WORMHOLE_ROOT=\(folder.path)/groups"] + environment)
  }

  /// A peer that has stopped itself inside its access.
  func stopped(_ kind: PeerJob.Coordination, _ name: String) throws -> Running {
    let peer = try peer(kind, path(name), .stop)
    try peer.waitUntilStopped()
    return peer
  }

  /// What is in a file; nil if there is none.
  func read(_ name: String) throws -> String? {
    do {
      return try folder.read("files/" + name)
    } catch Errno.noSuchFile {
      return nil
    }
  }

  /// The directory of accesses that are no group's.
  var place: String { "\(folder.path)/groups/wormhole.user/.wormhole/system/coordination" }

  func names(in place: AccessPlace) throws -> [String] {
    let path = self.place + "/" + place.name
    guard let directory = try? Descriptor.open(path: path, [.readOnly, .directory]) else {
      return []
    }
    return try directory.names()
  }

  /// Waits until so many accesses wait.
  func waitForWaiting(_ count: Int) throws {
    try eventually("\(count) wait") { try names(in: .waiting).count == count }
  }

  /// What is left of accesses that have ended, there and beside the files.
  func leftovers() throws -> [String] {
    var left = try AccessPlace.allCases.flatMap { place in
      try names(in: place).map { "\(place.name): \($0)" }
    }
    if let passed = try? Descriptor.open(path: place + "/passed", [.readOnly, .directory]) {
      left += try passed.names().map { "passed: \($0)" }
    }
    let files = try Descriptor.open(path: folder.path + "/files", [.readOnly, .directory])
    left += try files.names().filter { $0.hasPrefix(".wormhole") }
    return left
  }

  /// Runs the body while somebody else has an access.
  func whileSomebody(
    _ intent: Wormhole.Coordinator.Intent, _ body: () throws -> Void
  ) throws {
    let (gate, other) = (Gate(), another())
    let thread = try Thread("holder") { try? other.access([intent]) { _ in gate.pass() } }
    defer {
      gate.open()
      thread.join()
    }
    try gate.waitForSomebody()
    try body()
  }

  /// Whether an access is let in at once, for a thread that has none.
  func isFree(
    _ intent: Wormhole.Coordinator.Intent, by coordinator: Wormhole.Coordinator? = nil
  ) throws -> Bool {
    let coordinator = coordinator ?? another()
    let end = Monitor<WormholeError.Code??>(nil)
    let thread = try Thread("asking") {
      do {
        try coordinator.access([intent], within: .milliseconds(1)) { _ in }
        end.withLock { $0 = .some(nil) }
      } catch {
        end.withLock { $0 = (error as? WormholeError)?.code }
      }
    }
    thread.join()
    let code = try #require(end.withLock { $0 })
    if let code, code != .timedOut { throw TooLate(description: "\(code)") }
    return code == nil
  }
}

extension String {
  /// The tests may lie in a directory of any name.
  func dropping(bytes count: Int) -> String { String(Substring(utf8.dropFirst(count))) }
}
