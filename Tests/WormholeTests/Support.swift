import SharedContainer
import Syscalls
import TestSupport
import Wormhole

/// A container of one test's own.
struct Meeting {
  let folder: TemporaryDirectory
  let hole: Wormhole

  init(_ adjust: (inout Wormhole.Options) -> Void = { _ in }) throws {
    folder = try TemporaryDirectory()
    var options = Self.options
    adjust(&options)
    hole = try Wormhole(directory: folder.path + "/c", options: options)
  }

  /// A short lease, and what the environment asks for.
  private static var options: Wormhole.Options {
    var options = Wormhole.Options()
    options.lease = .milliseconds(50)
    options.environment = ContainerOptions.testing().environment
    return options
  }

  /// Where whoever holds a lock keeps it, and who waits goes on, however slow the machine is.
  static func patient() throws -> Meeting { try Meeting(havePatience) }

  static func havePatience(_ options: inout Wormhole.Options) {
    options.lease = .seconds(60)
    options.cap = .seconds(600)
    options.timeout = .seconds(600)
  }

  var path: String { hole.directory }

  /// The same container, opened once more.
  func another(_ adjust: (inout Wormhole.Options) -> Void = { _ in }) throws -> Wormhole {
    var options = Self.options
    adjust(&options)
    return try Wormhole(directory: path, options: options)
  }

  /// Writes bytes over a file of the container, as no program of ours would.
  func overwrite(_ name: String, _ bytes: [UInt8]) throws {
    let file = try Descriptor.open(path: path + "/" + name, [.writeOnly, .truncate])
    let failure: Errno? = bytes.withUnsafeBytes { bytes in
      do throws(Errno) {
        try file.writeFully(bytes)
        return nil
      } catch {
        return error
      }
    }
    if let failure { throw failure }
  }

  func bytes(of name: String) throws -> [UInt8] {
    try Descriptor.open(path: path + "/" + name, [.readOnly]).contents()
  }
}

/// A value of several types, as programs have them.
struct Order: Codable, Equatable, Sendable {
  struct Seat: Codable, Equatable, Sendable {
    var row: Int
    var number: Int
  }

  var film: String
  var seats: [Seat]
  var note: String?
}

extension Heard {
  /// The same for a task, whose thread others need meanwhile.
  func comes(
    _ what: String, until condition: @escaping @Sendable ([Element]) -> Bool
  ) async throws {
    // What it waits for is done by tasks, and other tests have the threads of the pool.
    try await onAnotherThread { try self.wait(what, within: patience * 10, until: condition) }
  }
}

extension Heard where Element: Equatable {
  func waitForLast(_ element: Element) throws {
    try wait("\(element)") { $0.last == element }
  }
}

/// Something that a closure waits at until the test opens it.
final class Gate: Sendable {
  private let monitor = Monitor((isOpen: false, waiting: 0))

  func open() { monitor.signal { $0.isOpen = true } }

  var isClosed: Bool { !monitor.withLock { $0.isOpen } }

  func pass() {
    monitor.signal { $0.waiting += 1 }
    let _: Void? = monitor.wait(until: .now + patience) { $0.isOpen ? () : nil }
  }

  /// Waits until somebody waits at the gate.
  func waitForSomebody() throws {
    let met: Void? = monitor.wait(until: .now + patience) { $0.waiting > 0 ? () : nil }
    if met == nil { throw TooLate(description: "nobody came to the gate") }
  }

  /// The same for a task, whose thread whoever comes may need.
  func somebodyComes() async throws {
    try await onAnotherThread { try self.waitForSomebody() }
  }
}

/// Looks again and again without holding up other tasks.
func eventuallyAsync(
  _ what: String, _ condition: @escaping @Sendable () throws -> Bool
) async throws {
  try await onAnotherThread { try eventually(what, within: .seconds(300), condition) }
}

/// Runs what waits on a thread of its own: those of the pool are for tasks.
private func onAnotherThread(_ body: @escaping @Sendable () throws -> Void) async throws {
  try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, _>) in
    do throws(Errno) {
      try Thread("waiting") { continuation.resume(with: Result { try body() }) }.detach()
    } catch {
      continuation.resume(throwing: error)
    }
  }
}
