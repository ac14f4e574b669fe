import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The files of one test, and the directory of the groups that order accesses to these files.
struct FileScene {
  let folder: TemporaryDirectory
  let arbiters: Arbiters
  private let lease: Duration

  /// - Parameter lease: short if the test suspends a process. Otherwise long, because on a busy
  ///   machine processes may not renew their heartbeats for longer than a short lease.
  init(lease: Duration = .seconds(1)) throws {
    self.lease = lease
    folder = try TemporaryDirectory()
    try folder.descriptor.makeDirectory("groups", mode: 0o700)
    try folder.descriptor.makeDirectory("files", mode: 0o700)
    arbiters = Arbiters(.testing(lease: lease), root: folder.path + "/groups")
  }

  func path(_ name: String) -> String { "\(folder.path)/files/\(name)" }

  /// A coordinator, as in another program.
  func another(_ purpose: String? = nil, lease: Duration? = nil) -> Coordinator {
    let options = ContainerOptions.testing(lease: lease ?? self.lease)
    return Coordinator(
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

  /// A peer that has suspended itself inside its access.
  func stopped(_ kind: PeerJob.Coordination, _ name: String) throws -> Running {
    let peer = try peer(kind, path(name), .stop)
    try peer.waitUntilStopped()
    return peer
  }

  /// The content of a file; nil if the file does not exist.
  func read(_ name: String) throws -> String? {
    do {
      return try folder.read("files/" + name)
    } catch Errno.noSuchFile {
      return nil
    }
  }

  /// The directory for accesses to files that belong to no group.
  var place: String { "\(folder.path)/groups/wormhole.user/.wormhole/system/coordination" }

  func names(in place: AccessPlace) throws -> [String] {
    let path = self.place + "/" + place.name
    guard let directory = try? Descriptor.open(path: path, [.readOnly, .directory]) else {
      return []
    }
    return try directory.names()
  }

  /// Waits until `count` accesses wait.
  func waitForWaiting(_ count: Int) throws {
    try eventually("\(count) wait") { try names(in: .waiting).count == count }
  }

  /// The remains of ended accesses, in the accesses' directories and beside the files.
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

  /// Runs the body while another thread has an access.
  func whileSomebody(
    _ intent: Coordinator.Intent, _ body: () throws -> Void
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

  /// Whether an access starts at once, for a thread without accesses.
  func isFree(
    _ intent: Coordinator.Intent, by coordinator: Coordinator? = nil
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
  /// The tests' directory may have any name.
  func dropping(bytes count: Int) -> String { String(Substring(utf8.dropFirst(count))) }
}
