package import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A slot that holds a number, which most tests of the promises change.
extension Slot {
  /// The stored number; 0 if the slot is empty.
  package func number() throws -> Int { try Self.number(in: read()) }

  package static func number(in content: Content) throws -> Int {
    switch content {
    case .nothing: return 0
    case .value(let bytes, _): return try BinaryDecoder().decode(Int.self, from: bytes)
    case .damaged(let reason): throw Unreadable(description: reason)
    case .tooLarge(let size): throw Unreadable(description: "it has \(size) bytes")
    }
  }

  /// Adds to the number, under the lock; returns the new number.
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

extension Container {
  /// Subtracts 1 from the first number and adds 1 to the second, in one update.
  package func move(_ slots: [Slot], durability: Durability = .process) throws {
    let time = Patience(until: .now + patience)
    try change(slots, "move", durability: durability, patience: time) { contents in
      let numbers = try contents.map(Slot.number(in:))
      return try [numbers[0] - 1, numbers[1] + 1].map { .put(try BinaryEncoder().encode($0)) }
    }
  }
}

/// A value was there that could not be read.
package struct Unreadable: Error, CustomStringConvertible {
  package let description: String
}

extension ContainerOptions {
  /// The options with which tests open containers: a short lease, and the environment's settings.
  package static func testing(lease: Duration = .milliseconds(50)) -> ContainerOptions {
    var options = ContainerOptions()
    options.lease = lease
    if Processes.environment("WORMHOLE_TEST_SHARING") == "group" { options.sharing = .group }
    return options
  }
}
