import TestSupport
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// An operation that the sweeps disturb at every system call of its run.
///
/// Each run has a container of its own, prepared alike, so that the n-th call is the same in every
/// run.
struct SweptOperation: Sendable, CustomStringConvertible {
  let name: String
  /// The job of the peer in the container.
  let job: @Sendable (_ path: String) -> PeerJob
  /// How much the operation adds to the number in the channel `n`.
  let adds: Int
  /// The number that the prepared container holds.
  let before: Int
  let prepare: @Sendable (_ path: String) throws -> [Running]

  var description: String { name }

  static let all: [SweptOperation] = [
    SweptOperation(name: "create", job: { .open($0) }, adds: 0, before: 0) { _ in [] },
    SweptOperation(name: "open", job: { .open($0) }, adds: 0, before: 3) { path in
      try holding(3, path)
      return []
    },
    SweptOperation(name: "first put", job: { .add($0, "n", times: 1) }, adds: 1, before: 0) {
      path in
      _ = try Container.open(path, options: .testing())
      return []
    },
    SweptOperation(name: "update", job: { .add($0, "n", times: 1) }, adds: 1, before: 3) { path in
      try holding(3, path)
      return []
    },
    SweptOperation(
      name: "durable update", job: { .add($0, "n", times: 1, durability: .power) }, adds: 1,
      before: 3
    ) { path in
      try holding(3, path)
      return []
    },
    SweptOperation(name: "heal", job: { .add($0, "n", times: 1) }, adds: 1, before: 2) { path in
      try holding(3, path)
      try damageValue(path)
      return []
    },
    SweptOperation(name: "sweep", job: { .open($0) }, adds: 0, before: 3) { path in
      try holding(3, path)
      let staging = try Descriptor.open(path: path + "/staging", [.readOnly, .directory])
      _ = try staging.open("0123456789abcdef", [.writeOnly, .create], mode: 0o600)
      try staging.makeDirectory("fedcba9876543210", mode: 0o700)
      return []
    },
    SweptOperation(name: "take over", job: { .add($0, "n", times: 1) }, adds: 1, before: 3) {
      path in
      try holding(3, path)
      let stopped = try Running(.stopInside(path, "n"))
      try stopped.waitUntilStopped()
      return [stopped]
    },
  ]

  /// A container whose channel holds the given number, with the number before as kept value.
  private static func holding(_ number: Int, _ path: String) throws {
    let slot = try Container.open(path, options: .testing()).slot(.channels, "n")
    for _ in 0..<number { try slot.add(durability: .power) }
  }

  /// Puts a value there whose checksum is wrong, as a power cut may.
  private static func damageValue(_ path: String) throws {
    let directory = try Descriptor.open(path: path + "/channels/n", [.readOnly, .directory])
    var bytes = try BinaryEncoder().encode(99)
    bytes[8] ^= 1
    let file = try directory.open("bad", [.writeOnly, .create], mode: 0o600)
    try file.write(bytes)
    try directory.rename("bad", to: directory, "value.plist")
  }
}

/// One run of an operation in a container of its own.
struct SweptRun {
  let operation: SweptOperation
  let folder: TemporaryDirectory
  let path: String
  /// Processes of the preparation that are stopped, and go on afterwards.
  let others: [Running]

  init(_ operation: SweptOperation) throws {
    self.operation = operation
    folder = try TemporaryDirectory()
    path = folder.path + "/c"
    others = try operation.prepare(path)
  }

  func start(faults: String = "", trace: Bool = false) throws -> Running {
    var environment = ["WORMHOLE_FAULTS=\(faults)"]
    if trace { environment.append("WORMHOLE_FAULT_TRACE=\(folder.path)/trace") }
    return try Running(operation.job(path), environment: environment)
  }

  /// How many calls the operation makes without a disturbance.
  static func countCalls(of operation: SweptOperation) throws -> Int {
    let run = try SweptRun(operation)
    _ = try run.start(trace: true).outcome()
    try run.letOthersEnd()
    return try run.folder.read("trace").split(separator: "\n").count
  }

  static let isLong = TestRun.isLong

  /// The points to disturb: a seeded tenth, or all of them in a long run.
  static func points(_ count: Int, _ random: inout SeededRandom) -> [Int] {
    let wanted = isLong ? count : max(4, count / 10)
    print("swept \(min(wanted, count)) of \(count) fault points")
    return Array((1...count).shuffled(using: &random).prefix(wanted)).sorted()
  }

  func letOthersEnd() throws {
    for other in others { _ = try other.waitOrGo() }
  }

  /// What is left beside the values once the container was opened and the channel changed.
  func leftovers() throws -> [String] {
    let root = try Descriptor.open(path: path, [.readOnly, .directory])
    let staging = try root.open("staging", [.readOnly, .directory])
    var left = try staging.names().map { "staging: \($0)" }
    let slot = try root.open("channels/n", [.readOnly, .directory])
    let names = Set(try slot.names())
    left += names.subtracting(["value.plist", "kept.plist", "lock"]).map { "slot: \($0)" }
    let locks = try slot.open("lock", [.readOnly, .directory])
    for name in try locks.names() where name.hasSuffix(".d") {
      let directory = try locks.open(name, [.readOnly, .directory])
      left += try directory.names().map { "\(name): \($0)" }
    }
    return left
  }
}
