import TestSupport
import WormholeRelay
import WormholeSyscalls

/// The thread of a test that drives a connection, in real time.
final class RelayLoop {
  let connection: RelayConnection
  let stream: JetStream
  var readers: [StreamReader] = []
  private let wake: WakeDescriptor

  init(_ connection: RelayConnection) throws {
    self.connection = connection
    stream = JetStream(connection)
    wake = try WakeDescriptor()
  }

  /// Connects, and waits until the connection is ready or closed.
  convenience init(
    _ address: String, token: String? = "secret", change: (inout RelayOptions) -> Void = { _ in }
  ) throws {
    var options = RelayOptions(name: "test", token: token)
    options.handshakeTimeout = patience
    change(&options)
    try self.init(RelayConnection(RelayAddress(address), options))
    try run("the connection is ready or closed") { connection.state != .connecting }
  }

  /// Drives the connection and the readers until the condition is met.
  func run(_ what: String, until condition: () throws -> Bool) throws {
    var limit = TimeLimit(patience)
    while true {
      let now = Instant.now
      connection.proceed(now)
      for reader in readers { reader.proceed(now) }
      if try condition() { return }
      if limit.isOver() { throw TooLate(description: "\(what); \(connection.state)") }
      let next = readers.compactMap(\.deadline).min() ?? .distantFuture
      try connection.wait(until: min(next, now + .milliseconds(20)), wake)
    }
  }

  /// Drives the connection until the handler has been called, and returns its argument.
  func result<Value>(
    _ what: String = "a reply", of body: (@escaping (Value) -> Void) throws -> Void
  ) throws -> Value {
    var results: [Value] = []
    try body { results.append($0) }
    try run(what) { !results.isEmpty }
    return results[0]
  }

  /// Stores one message, and returns the acknowledgement.
  @discardableResult func store(
    _ subject: String, _ text: String, id: String? = nil, expectedLast: UInt64? = nil
  ) throws -> JetStream.PublishReply {
    try result { handler in
      stream.publish(
        subject, id: id, expectedLast: expectedLast, Array(text.utf8), within: patience, handler)
    }.get()
  }

  @discardableResult func create(
    _ name: String, maxPerSubject: Int = 10_000, change: (inout StreamSettings) -> Void = { _ in }
  ) throws -> StreamInfo {
    var settings = StreamSettings(
      name: name, subjects: [name.lowercased() + ".>"], maxPerSubject: maxPerSubject,
      allowsDirect: true)
    change(&settings)
    let final = settings
    return try result { stream.createStream(final, within: patience, $0) }.get()
  }
}

/// Returns the failure that a body throws; nil if it throws none.
func relayFailure(_ body: () throws -> Void) -> RelayFailure? {
  do {
    try body()
    return nil
  } catch {
    return error as? RelayFailure
  }
}

func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
