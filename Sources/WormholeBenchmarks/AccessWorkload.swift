import Foundation
import SharedContainer
import Wormhole

/// An access to a file that nobody else wants, against a bare create, rename and unlink.
struct AccessAlone: Benchmark {
  static let name = "access"
  static let summary = "a coordinated access, against a bare create, rename and unlink in C"
  static let isPaired = true
  // It makes 21 calls where the bare one makes five, so that it takes two to six times as long;
  // how long a call takes is the machine's. The number of calls is held to exactly.
  static func requiredRatio(_ size: Size) -> Double? { 0.08 }

  private let scratch: Scratch
  private let coordinator: Wormhole.Coordinator
  private let floor: Floor

  init(size: Size) throws {
    scratch = try Scratch()
    coordinator = Wormhole.Coordinator(Arbiters(ContainerOptions(), root: scratch.path + "/groups"))
    floor = try scratch.floor(.small)
  }

  func ours() throws { try coordinator.write(scratch.path + "/file") { _ in } }
  func baseline() throws { try floor.access() }

  func details() throws -> [Detail] {
    [try Detail.calls("calls an access", limit: 22) { try ours() }]
  }
}

/// An access to a file that another process presents, against a question to that process.
///
/// The small size keeps both processes on one processor, the large one gives each its own.
struct AccessPresented: Benchmark {
  static let name = "access-presented"
  static let summary = "an access to a file that another process presents, against a request to it"
  static let isPaired = true
  // Both processes together make fewer calls than for two questions, since the presenter's answer
  // is a word, and as a rule it takes no longer than these. How long threads take to wake is the
  // machine's: single runs differ widely. The number of calls of the process that asks is held to
  // exactly: the other one makes fewer than for a question.
  static func requiredRatio(_ size: Size) -> Double? { 0.18 }

  private let scratch: Scratch
  private let coordinator: Wormhole.Coordinator
  private let peer: Wormhole.Peer
  private let other: RequestProcess

  init(size: Size) throws {
    scratch = try Scratch()
    EchoProcess.pin(0)
    coordinator = Self.coordinator(scratch.path)
    peer = try Wormhole(directory: scratch.path + "/holes").join(as: "phone").peer("watch")
    other = try RequestProcess("presents", size, scratch.path)
    let deadline = ContinuousClock.now + .seconds(10)
    while try !peer.isThere {
      guard ContinuousClock.now < deadline else { throw BenchmarkError.nothingMeasured(Self.name) }
    }
    // A listing of those who present is good once it is a second old, and few are younger.
    Thread.sleep(forTimeInterval: 1.1)
    for _ in 0..<20 {
      try ours()
      try baseline()
    }
  }

  private static func coordinator(_ path: String) -> Wormhole.Coordinator {
    Wormhole.Coordinator(Arbiters(ContainerOptions(), root: path + "/groups"))
  }

  /// What the other process does.
  static func present(_ path: String) throws {
    // Who reads what another process presents finds it there.
    for name in ["file", "other"] {
      try Data(repeating: 7, count: 100).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }
    var presenter = Wormhole.Coordinator.Presenter()
    presenter.save = { done in done() }
    try coordinator(path).present(path + "/file", as: presenter)
    // One that those who read do not ask.
    try coordinator(path).present(path + "/other", as: Wormhole.Coordinator.Presenter())
  }

  func ours() throws { try coordinator.read(scratch.path + "/file") { _ in } }

  func baseline() throws {
    let _: Data = try peer.request(Data(repeating: 7, count: 100), kind: "echo")
  }

  func details() throws -> [Detail] {
    defer { EchoProcess.pin(-1) }  // Asked for last; other workloads may have both processors.
    let access = try Measurement.measure(for: .milliseconds(200)) { try ours() }
    let unasked = try Measurement.measure(for: .milliseconds(200)) {
      try coordinator.read(scratch.path + "/other") { _ in }
    }
    let request = try Measurement.measure(for: .milliseconds(200)) { try baseline() }
    return [
      try Detail.calls("calls an access", underLock: 29) { try ours() },
      try Detail.calls("calls a request", limit: 13) { try baseline() },
      Detail("an access, us", access.median / 1000),
      Detail("a request, us", request.median / 1000),
      Detail("requests an access", access.median / request.median),
      Detail("requests a read of what others only listen for", unasked.median / request.median),
    ]
  }
}
