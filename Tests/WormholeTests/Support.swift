import TestSupport
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A test's own container.
struct Meeting {
  let folder: TemporaryDirectory
  let container: SharedContainer

  init(_ adjust: (inout Options) -> Void = { _ in }) throws {
    folder = try TemporaryDirectory()
    var options = Self.options
    adjust(&options)
    container = try SharedContainer(directory: folder.path + "/c", options: options)
  }

  /// A short lease, and the environment that tests need.
  private static var options: Options {
    var options = Options()
    options.lease = .milliseconds(50)
    options.environment = ContainerOptions.testing().environment
    return options
  }

  /// A container whose holders keep their locks, and whose waiters continue to wait, however slow
  /// the machine is.
  static func patient() throws -> Meeting { try Meeting(havePatience) }

  static func havePatience(_ options: inout Options) {
    options.lease = .seconds(60)
    options.cap = .seconds(600)
    options.timeout = .seconds(600)
  }

  var path: String { container.directory }

  /// The same container, opened once more.
  func another(_ adjust: (inout Options) -> Void = { _ in }) throws -> SharedContainer {
    var options = Self.options
    adjust(&options)
    return try SharedContainer(directory: path, options: options)
  }

  private func separate(_ name: String) throws {
    let whole = path + "/" + name
    let copy = try Descriptor.open(path: whole, [.readOnly]).contents()
    let directory = try Descriptor.open(
      path: String(whole.dropLast("/value.plist".count)), [.readOnly, .directory])
    try directory.open("foreign", [.writeOnly, .create], mode: 0o600).write(copy)
    try directory.rename("foreign", to: directory, "value.plist")
  }

  /// Writes bytes over a file of the container in place, as the library never does.
  ///
  /// A value that is also the previous value is copied first, so that only one of them changes.
  func overwrite(_ name: String, _ bytes: [UInt8]) throws {
    if name.hasSuffix("/value.plist") { try separate(name) }
    let file = try Descriptor.open(path: path + "/" + name, [.writeOnly, .truncate])
    try file.writeFully(bytes)
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
  /// The same for a task, whose thread is needed by other tasks in the meantime.
  func comes(
    _ what: String, until condition: @escaping @Sendable ([Element]) -> Bool
  ) async throws {
    // Tasks do the work that is awaited, and other tests occupy the threads of the pool.
    let time = TestRun.isMutant ? patience : patience * 10
    try await onAnotherThread { try self.wait(what, within: time, until: condition) }
  }
}

extension Heard where Element: Equatable {
  func waitForLast(_ element: Element) throws {
    try wait("\(element)") { $0.last == element }
  }
}

/// A gate at which a closure waits until the test opens the gate.
final class Gate: Sendable {
  private let monitor = Monitor((isOpen: false, waiting: 0))

  func open() { monitor.signal { $0.isOpen = true } }

  var isClosed: Bool { !monitor.withLock { $0.isOpen } }

  func pass() {
    monitor.signal { $0.waiting += 1 }
    let _: Void? = monitor.wait(until: .now + patience) { $0.isOpen ? () : nil }
  }

  /// Waits until a thread waits at the gate.
  func waitForSomebody() throws {
    let met: Void? = monitor.wait(until: .now + patience) { $0.waiting > 0 ? () : nil }
    if met == nil { throw TooLate(description: "nobody came to the gate") }
  }

  /// The same for a task, whose thread the arriving closure may need.
  func somebodyComes() async throws {
    try await onAnotherThread { try self.waitForSomebody() }
  }
}

/// Checks the condition repeatedly without holding up tasks.
func eventuallyAsync(
  _ what: String, _ condition: @escaping @Sendable () throws -> Bool
) async throws {
  try await onAnotherThread { try eventually(what, within: .seconds(300), condition) }
}

/// Runs a waiting body on a thread of its own, because the threads of the pool are for tasks.
private func onAnotherThread(_ body: @escaping @Sendable () throws -> Void) async throws {
  try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, _>) in
    do throws(Errno) {
      try Thread("waiting") { continuation.resume(with: Result { try body() }) }.detach()
    } catch {
      continuation.resume(throwing: error)
    }
  }
}
