import PropertyLists
package import SharedContainer
import Syscalls

/// A slot that holds a number: what most tests of the promises change.
extension Slot {
  /// The number that is there; 0 if there is nothing.
  package func number() throws -> Int { try Self.number(in: read()) }

  package static func number(in content: Content) throws -> Int {
    switch content {
    case .nothing: return 0
    case .value(let bytes, _): return try BinaryDecoder().decode(Int.self, from: bytes)
    case .damaged(let reason): throw Unreadable(description: reason)
    case .tooLarge(let size): throw Unreadable(description: "it has \(size) bytes")
    }
  }

  /// Adds to the number, under the lock; answers what it then is.
  @discardableResult
  package func add(
    _ step: Int = 1, durability: Durability = .process, policy: LockPolicy? = nil,
    patience: Patience = .unlimited, _ body: () throws -> Void = {}
  ) throws -> Int {
    var sum = 0
    try change("update", durability: durability, policy: policy, patience: patience) { content in
      sum = try Self.number(in: content) + step
      try body()
      return .put(try BinaryEncoder().encode(sum))
    }
    return sum
  }
}

/// A value was there that could not be read.
package struct Unreadable: Error, CustomStringConvertible {
  package let description: String
}

extension ContainerOptions {
  /// As tests open containers: a short lease, and what the environment asks for.
  package static func testing(lease: Duration = .milliseconds(50)) -> ContainerOptions {
    var options = ContainerOptions()
    options.lease = lease
    if Processes.environment("WORMHOLE_TEST_SHARING") == "group" { options.sharing = .group }
    return options
  }
}
