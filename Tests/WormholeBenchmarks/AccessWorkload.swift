import Foundation
import WormholeContainerStorage
import Wormhole

/// An access to a file that no other process uses, against a bare create, rename and unlink.
struct AccessAlone: Benchmark {
  static let name = "access"
  static let summary = "a coordinated access, against a bare create, rename and unlink in C"
  static let isPaired = true
  // An access makes 23 calls and the bare sequence five, so the access takes two to six times as
  // long; the duration of a call depends on the host. The number of calls is checked exactly. Two
  // of the calls look whether other users share the parent of all groups, and whether the open
  // directory of accesses still has its name.
  static func requiredRatio(_ size: Size) -> Double? { 0.08 }

  private let scratch: Scratch
  private let coordinator: Coordinator
  private let floor: Floor

  init(size: Size) throws {
    scratch = try Scratch()
    coordinator = Coordinator(Arbiters(ContainerOptions(), root: scratch.path + "/groups"))
    floor = try scratch.floor(.small)
  }

  func ours() throws { try coordinator.write(scratch.path + "/file") { _ in } }
  func baseline() throws { try floor.access() }

  func details() throws -> [Detail] {
    [try Detail.calls("calls an access", limit: 24) { try ours() }]
  }
}

/// An access to a file that another process presents, against a request to the presenting process.
///
/// In the small size both processes share a processor; in the large size each process has its own.
struct AccessPresented: Benchmark {
  static let name = "access-presented"
  static let summary = "an access to a file that another process presents, against a request to it"
  static let isPaired = true
  // Both processes together make fewer calls than for two requests, because the presenter's reply
  // is a single yes or no; as a rule an access takes no longer than two requests. The time until a
  // thread wakes depends on the host: single runs differ widely. The number of calls of the
  // accessing process is checked exactly: the presenting process makes fewer calls than for a
  // request.
  static func requiredRatio(_ size: Size) -> Double? { 0.18 }

  private let scratch: Scratch
  private let coordinator: Coordinator
  private let peer: Peer
  private let other: RequestProcess

  init(size: Size) throws {
    scratch = try Scratch()
    EchoProcess.pin(0)
    coordinator = Self.coordinator(scratch.path)
    peer = try SharedContainer(directory: scratch.path + "/holes").join(as: "phone").peer("watch")
    other = try RequestProcess("presents", size, scratch.path)
    let deadline = ContinuousClock.now + .seconds(10)
    while try !peer.isThere {
      guard ContinuousClock.now < deadline else { throw BenchmarkError.nothingMeasured(Self.name) }
    }
    // A listing of presenters is trusted once its directory has been unchanged for a second; in
    // practice, few directories have changed more recently.
    Thread.sleep(forTimeInterval: 1.1)
    for _ in 0..<20 {
      try ours()
      try baseline()
    }
  }

  private static func coordinator(_ path: String) -> Coordinator {
    Coordinator(Arbiters(ContainerOptions(), root: path + "/groups"))
  }

  /// Runs in the presenting process.
  static func present(_ path: String) throws {
    // A reader requires that the presented files exist.
    for name in ["file", "other"] {
      try Data(repeating: 7, count: 100).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }
    var presenter = Coordinator.Presenter()
    presenter.save = { done in done() }
    try coordinator(path).present(path + "/file", as: presenter)
    // The second presenter has no handler that a reader must ask.
    try coordinator(path).present(path + "/other", as: Coordinator.Presenter())
  }

  func ours() throws { try coordinator.read(scratch.path + "/file") { _ in } }

  func baseline() throws {
    let _: Data = try peer.request(Data(repeating: 7, count: 100), kind: "echo")
  }

  func details() throws -> [Detail] {
    defer { EchoProcess.pin(-1) }  // Details come last; other workloads may use both processors.
    let access = try Measurement.measure(for: .milliseconds(200)) { try ours() }
    let unasked = try Measurement.measure(for: .milliseconds(200)) {
      try coordinator.read(scratch.path + "/other") { _ in }
    }
    let request = try Measurement.measure(for: .milliseconds(200)) { try baseline() }
    return [
      try Detail.calls("calls an access", underLock: 30) { try ours() },
      try Detail.calls("calls a request", limit: 13) { try baseline() },
      Detail("an access, us", access.median / 1000),
      Detail("a request, us", request.median / 1000),
      Detail("requests an access", access.median / request.median),
      Detail("requests a read that asks no presenter", unasked.median / request.median),
    ]
  }
}
