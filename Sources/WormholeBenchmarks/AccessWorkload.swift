import SharedContainer
import Wormhole

/// An access to a file that nobody else wants, against a bare create, rename and unlink.
struct AccessAlone: Benchmark {
  static let name = "access"
  static let summary = "a coordinated access, against a bare create, rename and unlink in C"
  static let isPaired = true
  // It makes 37 calls where the bare one makes five, so that it takes five to nine times as long;
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
    [try Detail.calls("calls an access", limit: 38) { try ours() }]
  }
}
