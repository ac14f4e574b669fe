internal import WormholeContainerStorage
internal import WormholeRelay
internal import WormholeSyscalls

/// A connection for a command that asks the servers and waits for each reply.
final class ServerDialog {
  let connection: RelayConnection
  let jetStream: JetStream
  private let address: RelayAddress
  private let wake: WakeDescriptor
  private var deadline: Instant

  /// - Parameter machine: the machine as which the command speaks; nil for an operator.
  init(
    _ settings: Bridge.Settings, _ name: String, as machine: String? = nil,
    until deadline: Instant
  ) throws {
    self.deadline = deadline
    address = settings.address
    var options = RelayConnection.Options(name: name)
    options.token = settings.token
    options.domain = settings.domain
    options.allowsOpenServer = settings.allowsOpenServer
    if let machine { options.inbox = "_INBOX.\(machine)" }
    connection = try RelayConnection(settings.address, options)
    jetStream = JetStream(connection)
    wake = try WakeDescriptor()
  }

  /// Repeats a dialog from its beginning until the time is over: servers that have just been
  /// started take a moment, and reply to nothing until they have a leader.
  ///
  /// - Parameter body: may be repeated after each of its requests.
  static func run<Value>(
    _ settings: Bridge.Settings, _ name: String, as machine: String? = nil,
    _ body: (ServerDialog) throws -> Value
  ) throws -> Value {
    let patienceEnd = settings.patience.map { Instant.now + $0 }
    var last: RelayFailure?
    while true {
      do {
        let dialog = try ServerDialog(
          settings, name, as: machine, until: patienceEnd ?? .now + .seconds(30))
        defer { dialog.connection.close() }
        return try body(dialog)
      } catch let failure as RelayFailure {
        guard let patienceEnd, .now < patienceEnd, failure.mayPass else {
          throw BridgeEnd(failure)
        }
        last = failure
      } catch let end as BridgeEnd where end == .noStreams {
        // A server that has a copy of the stream may not know the record of a new setup yet.
        guard let patienceEnd, .now < patienceEnd else { throw end }
      } catch let end as BridgeEnd where end.kind == .unavailable {
        // The time was over in another attempt: the reason of the one before tells more.
        throw last.map { BridgeEnd($0) } ?? end
      }
      try WakeDescriptor().wait(until: .now + .milliseconds(100))
    }
  }

  /// Lets the dialog last until a time at least, for a part with a limit of its own.
  func extend(to end: Instant) { deadline = max(deadline, end) }

  /// Waits until the server has accepted the connection.
  func connect() throws { try turn { self.connection.state == .ready } }

  /// Waits for the result of a request.
  func result<Value>(
    _ request: (@escaping (Result<Value, RelayFailure>) -> Void) -> Void
  ) throws -> Value {
    var result: Result<Value, RelayFailure>?
    try connect()
    request { result = $0 }
    try turn { result != nil }
    return try result!.get()
  }

  /// Changes a record by compare-and-set.
  ///
  /// - Parameters:
  ///   - sequence: the record's latest sequence number that the caller knows.
  ///   - conflict: thrown if the record was changed since.
  func change(
    _ subject: String, after sequence: UInt64, _ bytes: [UInt8],
    orElse conflict: @autoclosure () -> WormholeError
  ) throws {
    guard try changes(subject, after: sequence, bytes) else { throw conflict() }
  }

  /// Changes a record by compare-and-set; returns false if the record was changed since.
  func changes(_ subject: String, after sequence: UInt64, _ bytes: [UInt8]) throws -> Bool {
    do {
      _ = try result { handler in
        jetStream.publish(subject, expectedLast: sequence, bytes, within: .seconds(10)) {
          handler($0)
        }
      }
    } catch let failure as RelayFailure {
      guard JetStreamError.wrongLastSequence.contains(failure.errorCode ?? 0) else { throw failure }
      return false
    }
    return true
  }

  /// Waits for the result of a request to a stream that was just made.
  ///
  /// A leaf knows the subjects of the stream a moment later, and has no responders until then.
  func resultOfNewStream<Value>(
    _ request: (@escaping (Result<Value, RelayFailure>) -> Void) -> Void
  ) throws -> Value {
    let end = Instant.now + .seconds(10)
    while true {
      do {
        return try result(request)
      } catch let failure as RelayFailure {
        guard failure.kind == .noResponders, .now < end else { throw failure }
        try turn(until: { false }, within: .milliseconds(100))
      }
    }
  }

  /// Drives the connection until a condition holds.
  ///
  /// - Parameters:
  ///   - limit: after this time the function returns false; the dialog's own deadline is an error.
  ///   - step: called at each turn.
  @discardableResult
  func turn(
    until isDone: () -> Bool, within limit: Duration? = nil, _ step: (Instant) -> Void = { _ in }
  ) throws -> Bool {
    let end = limit.map { Instant.now + $0 }
    while true {
      let now = Instant.now
      connection.proceed(now)
      step(now)
      if isDone() { return true }
      if case .closed(let failure) = connection.state { throw failure }
      if let end, end <= now { return false }
      guard now < deadline else {
        throw BridgeEnd(.unavailable, "the servers at \(address) do not answer")
      }
      let next = min(end ?? deadline, deadline, now + .milliseconds(200))
      try connection.wait(until: next, wake)
    }
  }

  /// Reads the number of streams, as the setup has stored it.
  func deployment() throws -> Deployment {
    switch try result({ handler in self.jetStream.readSetup { handler($0) } }) {
    case .done(let deployment): return deployment
    case .later: throw BridgeEnd.laterSetup
    case .missing: throw BridgeEnd.noStreams
    }
  }

  /// Reads all records of a group: the starts of machines, and the homes of members.
  func records(_ subjects: Subjects) throws -> GroupRecords {
    try connect()
    var records = GroupRecords()
    let reader = StreamReader(
      jetStream, stream: subjects.recordStream, filter: subjects.allRecords, from: .lastPerSubject
    ) { messages in
      for message in messages { records.take(message, subjects) }
    }
    defer { reader.stop() }
    guard try turn(until: { reader.isCaughtUp }, within: .seconds(10), { reader.proceed($0) })
    else {
      throw reader.failure
        ?? RelayFailure(.timedOut, "the records of the group cannot be read in time")
    }
    return records
  }
}

extension RelayFailure {
  /// Whether the same request may succeed a moment later.
  var mayPass: Bool {
    [.unreachable, .closed, .noResponders, .timedOut].contains(kind)
      || [JetStreamError.notNow, JetStreamError.noPeers].contains(errorCode)
  }
}
