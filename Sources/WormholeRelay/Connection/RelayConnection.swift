package import WormholeSyscalls

/// A connection to a NATS server, driven by one thread.
///
/// The thread waits with ``wait(until:_:)`` and calls ``proceed(_:)`` after each wait. Nothing else
/// reads or writes the socket, and all handlers run inside `proceed`, `close`, or the call that
/// fails at once. A handler may call every function of the connection.
///
/// A closed connection stays closed: the caller makes a new one. At the close, every pending
/// request fails once with the kind `closed`, and subscriptions end without a call. A connection
/// that is released without a close calls no handler.
package final class RelayConnection {
  package typealias Options = RelayOptions

  package enum State: Equatable {
    case connecting, ready
    case closed(RelayFailure)
  }

  /// The socket, to wait for; nil once the connection is closed.
  package private(set) var descriptor: Descriptor?
  /// The number of the socket, for the caller's own poll; nil once the connection is closed.
  package var socketNumber: Int32? {
    switch descriptor {
    case .none: nil
    case .some(let socket): socket.rawValue
    }
  }
  /// Receives each subject that the server refuses; a request on the subject fails as well.
  ///
  /// Receives also each message that was published before the server's limit was known, and exceeds
  /// the limit.
  package var onPermissionError: ((RelayFailure) -> Void)?
  /// The time of the latest ``proceed(_:)``.
  package private(set) var now = Instant(nanoseconds: 0)
  /// The number of bytes that have arrived.
  package private(set) var receivedBytes = 0
  /// The number of bytes that the kernel has taken.
  package private(set) var writtenBytes = 0

  private var session: RelaySession
  private var handlers: [UInt64: (Result<RelayMessage, RelayFailure>) -> Void] = [:]
  private var subscriptions: [Int: (RelayMessage) -> Void] = [:]
  private var lastSubscription = RelaySession.inboxSubscription
  private var lastName = 0
  /// Called when all messages of a `proceed` have been handled.
  private var batchEnds: [Int: () -> Void] = [:]
  private var buffer = [UInt8](repeating: 0, count: 256 << 10)
  private var isProceeding = false

  /// Begins to connect.
  ///
  /// - Throws: `unreachable` if no server listens; for other reasons, the connection closes later.
  package init(_ address: RelayAddress, _ options: Options) throws(RelayFailure) {
    session = RelaySession(options, random: SystemRandom.number())
    do throws(Errno) {
      descriptor = try .connecting(
        toLoopbackPort: address.port, isVersionSix: address.isVersionSix)
    } catch {
      throw RelayFailure(.unreachable, "cannot connect to '\(address)': \(error)")
    }
  }

  package var state: State {
    switch session.phase {
    case .greeting, .authorizing: .connecting
    case .ready: .ready
    case .closed(let failure): .closed(failure)
    }
  }

  /// The server's latest description of itself.
  package var server: ServerInfo { session.server }

  /// Whether bytes wait until the socket is writable.
  package var wantsToWrite: Bool { session.unsent > 0 }

  /// The time of the next ``proceed(_:)``, though nothing arrives; nil once it is closed.
  package var deadline: Instant? { session.deadline }

  /// The beginning of all subjects for replies to this connection.
  package var inbox: String { session.inbox }

  /// Returns a subject for replies that no other subscription of this connection covers.
  package func makeInbox() -> String {
    lastName += 1
    return "\(session.inbox).r.\(lastName)"
  }
}

// MARK: - Driving

extension RelayConnection {
  /// Waits until ``proceed(_:)`` has work, until the deadline, or until the wake descriptor is
  /// raised.
  package func wait(until deadline: Instant?, _ wake: borrowing WakeDescriptor) throws(Errno) {
    let end = [deadline, self.deadline].compactMap { $0 }.min()
    switch descriptor {
    case .none: try wake.wait(until: end)
    case .some(let socket): try socket.wait(writes: wantsToWrite, or: wake, until: end)
    }
  }

  /// Reads everything that has arrived, calls handlers, ends requests, and writes.
  ///
  /// At most 16 MiB are read, so that a fast server does not hold the thread.
  package func proceed(_ now: Instant) {
    guard !isProceeding else { return }
    isProceeding = true
    defer { isProceeding = false }
    self.now = now
    var end = read()
    if end == nil {
      session.tick(now)
      handleEvents()
    }
    for batchEnd in batchEnds.values { batchEnd() }
    if end == nil, let failure = write() {
      // The server may have stated the reason before it closed the connection.
      end = read() ?? failure
      for batchEnd in batchEnds.values { batchEnd() }
    }
    if let end { session.close(end) }
    settle()
  }

  /// Closes the connection; pending requests fail before the function returns.
  package func close() {
    session.close(RelayFailure(.closed, "the connection was closed"))
    settle()
  }

  /// Reads and handles; returns the reason if the connection has ended.
  private func read() -> RelayFailure? {
    for _ in 0..<64 {
      let count: Int?
      do throws(Errno) {
        count = try receive()
      } catch {
        let kind: RelayFailure.Kind = error == .connectionRefused ? .unreachable : .closed
        return RelayFailure(kind, "the connection to the server failed: \(error)")
      }
      guard let count else { return nil }
      guard count > 0 else {
        return RelayFailure(.closed, "the server closed the connection")
      }
      receivedBytes += count
      session.feed(buffer.span.bytes.extracting(..<count))
      handleEvents()
      guard count == buffer.count else { return nil }
    }
    return nil
  }

  /// Returns nil if no bytes wait, or the connection is closed.
  private func receive() throws(Errno) -> Int? {
    switch descriptor {
    case .none: return nil
    case .some(let socket): return try socket.receive(into: &buffer)
    }
  }

  /// Writes what the kernel has room for; returns the reason if the connection has ended.
  private func write() -> RelayFailure? {
    while wantsToWrite {
      let count: Int?
      do throws(Errno) {
        count = try send()
      } catch {
        return RelayFailure(.closed, "the connection to the server failed: \(error)")
      }
      guard let count, count > 0 else { return nil }
      session.didSend(count)
      writtenBytes += count
    }
    return nil
  }

  private func send() throws(Errno) -> Int? {
    switch descriptor {
    case .none: return nil
    case .some(let socket): return try socket.send(session.outgoing, from: session.sent)
    }
  }

  private func handleEvents() {
    while let event = session.next() {
      switch event {
      case .ready: break
      case .message(let subscription, let message): subscriptions[subscription]?(message)
      case .finished(let id, let result): handlers.removeValue(forKey: id)?(result)
      case .permission(let failure): onPermissionError?(failure)
      }
    }
  }

  /// Ends everything if the session is closed.
  private func settle() {
    guard case .closed(let failure) = session.phase else { return }
    descriptor = nil
    subscriptions = [:]
    batchEnds = [:]
    let pending = handlers.sorted { $0.key < $1.key }
    handlers = [:]
    let result: Result<RelayMessage, RelayFailure> = .failure(
      RelayFailure(.closed, failure.reason))
    for (_, handler) in pending { handler(result) }
  }
}

// MARK: - Messages

extension RelayConnection {
  /// Subscribes to a subject, also before the connection is ready.
  ///
  /// - Returns: the subscription, for ``unsubscribe(_:)``. Without the right to the subject no
  ///   message arrives, and ``onPermissionError`` is called.
  @discardableResult package func subscribe(
    _ subject: String, _ handler: @escaping (RelayMessage) -> Void
  ) -> Int {
    lastSubscription += 1
    do throws(RelayFailure) {
      try session.subscribe(subject, lastSubscription)
      subscriptions[lastSubscription] = handler
    } catch {
      if error.kind != .closed { onPermissionError?(error) }
    }
    return lastSubscription
  }

  /// Ends a subscription: its handler is not called again.
  package func unsubscribe(_ id: Int) {
    guard subscriptions.removeValue(forKey: id) != nil else { return }
    // Too much waits to be sent: messages for the subscription are dropped here.
    try? session.unsubscribe(id)
  }

  /// Sends a message, without knowing whether a program receives it.
  ///
  /// - Throws: `tooLarge`, `malformed` or `closed`; the message is not sent.
  package func publish(
    _ subject: String, replyTo: String? = nil, headers: RelayHeaders = [], _ payload: [UInt8]
  ) throws(RelayFailure) {
    try session.publish(subject, replyTo: replyTo, headers: headers, payload)
  }

  /// Sends a message and waits for one reply.
  ///
  /// The handler is called exactly once: with the reply, or with the failure. If the request cannot
  /// be sent, the handler is called before this function returns.
  ///
  /// - Parameter time: begins with the next ``proceed(_:)``. A late reply is dropped.
  package func request(
    _ subject: String, headers: RelayHeaders = [], _ payload: [UInt8], within time: Duration,
    _ handler: @escaping (Result<RelayMessage, RelayFailure>) -> Void
  ) {
    do throws(RelayFailure) {
      let id = try session.request(subject, headers: headers, payload, within: time)
      handlers[id] = handler
    } catch {
      handler(.failure(error))
    }
  }

  /// Returns a number for ``addBatchEnd(_:_:)``.
  func nextBatchEnd() -> Int {
    lastName += 1
    return lastName
  }

  /// Calls the closure at the end of each ``proceed(_:)``, until ``removeBatchEnd(_:)``.
  func addBatchEnd(_ id: Int, _ body: @escaping () -> Void) { batchEnds[id] = body }

  func removeBatchEnd(_ id: Int) { batchEnds[id] = nil }
}
