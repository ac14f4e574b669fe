import TestSupport
import WormholeHubProtocol
import WormholeRelay
import WormholeSyscalls

/// A client and a lying server, driven by one thread in a time of their own.
///
/// The client publishes messages until each is acknowledged, makes requests, and reads the stream;
/// when its connection closes, it makes a new one.
final class LyingRound {
  struct Wrong: Error, CustomStringConvertible {
    let description: String
  }

  let server: LyingServer
  var now = Instant(nanoseconds: 1_000_000_000)
  private(set) var connection: RelayConnection?
  private(set) var reader: StreamReader?
  private(set) var stream: JetStream?
  /// What the reader has given.
  private(set) var given: [StreamMessage] = []
  /// The reader's number of restarts when it gave the latest messages.
  private(set) var restartsWhenGiven = 0
  private(set) var wrong: Wrong?
  /// The number of calls for each request.
  private(set) var calls: [Int] = []
  private(set) var closeReasons: [RelayFailure] = []
  var start: StreamReader.Start = .after(0)
  private var unpublished: [Int]
  private var published = 0
  private var inFlight = 0
  private var nextRequest = Instant(nanoseconds: 0)
  private var reconnectAt = Instant(nanoseconds: 0)
  /// How long the kernel may still carry what one side has sent.
  private var kernelTime: TimeLimit?
  private var steps = 0

  init(seed: UInt64, messages: Int = 30, lies: LyingServer.Lies = .init()) throws {
    server = try LyingServer(seed: seed, lies: lies)
    unpublished = Array(0..<messages)
  }

  /// Whether the reader has given everything that was published, and everything was.
  var isComplete: Bool {
    unpublished.isEmpty && inFlight == 0 && given.count == server.log.count
      && reader?.isCaughtUp == true
  }

  /// Drives both until the condition is met; fails behind the bound.
  func run(_ what: String, within time: Duration, until condition: () -> Bool) throws {
    let end = now + time
    while !condition() {
      guard now < end else {
        throw Wrong(
          description: "\(what): not within \(time); \(String(describing: connection?.state)); "
            + "\(String(describing: reader?.failure)); given \(given.count) of "
            + "\(server.log.count); to publish \(unpublished.count); in flight \(inFlight)")
      }
      step()
      if let wrong { throw wrong }
    }
  }

  /// Closes the connection and checks that each request was answered once.
  func finish() throws {
    reader?.stop()
    connection?.close()
    if let wrong { throw wrong }
    let unanswered = calls.count { $0 != 1 }
    guard unanswered == 0 else {
      throw Wrong(description: "\(unanswered) requests were not answered once")
    }
  }

  private func step() {
    connect()
    let before = traffic
    request()
    let hasWorked = server.step(now)
    connection?.proceed(now)
    reader?.proceed(now)
    if hasWorked || traffic != before || connection?.wantsToWrite == true {
      steps += 1
      if steps > 10_000 { wrong = Wrong(description: "client and server never rest") }
      kernelTime = nil
    } else if kernelCarries {
      // What the kernel still carries is not late: no time passes for it.
      var limit = kernelTime ?? TimeLimit(patience)
      if limit.isOver() { wrong = Wrong(description: "the kernel delivers nothing") }
      kernelTime = limit
      Processes.yield()
    } else {
      advance()
    }
  }

  private var traffic: [Int] { [connection?.receivedBytes ?? 0, server.sentBytes, calls.count] }

  private var kernelCarries: Bool {
    guard let connection else { return false }
    if case .closed = connection.state { return false }
    return server.isOnTheWay(
      received: connection.receivedBytes, written: connection.writtenBytes)
  }

  private func advance() {
    kernelTime = nil
    steps = 0
    let next =
      [
        connection?.deadline, reader?.deadline, server.deadline,
        connection == nil ? reconnectAt : nil, now + .milliseconds(500),
      ].compactMap(\.self).min() ?? now
    now = max(next, now + .milliseconds(1))
  }

  private func connect() {
    if let connection {
      guard case .closed(let failure) = connection.state else { return }
      closeReasons.append(failure)
      self.connection = nil
      reader?.stop()
      if case .after = start { start = .after(reader?.position ?? 0) }
      reader = nil
      reconnectAt = now + .milliseconds(100)
    }
    guard now >= reconnectAt else { return }
    do throws(RelayFailure) {
      let made = try RelayConnection(
        RelayAddress(server.address), RelayOptions(name: "round", token: "secret"))
      connection = made
      let stream = JetStream(made)
      self.stream = stream
      reader = StreamReader(stream, stream: "S", filter: "s.>", from: start) { [weak self] in
        self?.take($0)
      }
    } catch {
      reconnectAt = now + .milliseconds(100)
    }
  }

  /// Notes a call, and complains about the second one.
  private func expectCall() -> () -> Void {
    let number = calls.count
    calls.append(0)
    return { [self] in
      calls[number] += 1
      if calls[number] > 1 { wrong = Wrong(description: "request \(number) was answered twice") }
    }
  }

  private func request() {
    guard let connection, let stream, connection.state == .ready else { return }
    if inFlight < 3, !unpublished.isEmpty {
      let number = unpublished.removeFirst()
      inFlight += 1
      let call = expectCall()
      stream.publish(
        "s.\(number % 3)", id: "\(number)", Array("\(number)".utf8), within: .seconds(5)
      ) { [self] result in
        call()
        inFlight -= 1
        guard case .success(let place) = result else { return unpublished.append(number) }
        published += 1
        if text(server.log[Int(place.sequence) - 1].payload) != "\(number)" {
          wrong = Wrong(description: "message \(number) has another's place")
        }
      }
    }
    guard now >= nextRequest else { return }
    nextRequest = now + .milliseconds(700)
    for subject in ["echo.a", "silent", "nobody"] {
      let call = expectCall()
      connection.request(subject, Array(subject.utf8), within: .seconds(3)) { [self] result in
        call()
        guard case .success(let reply) = result else { return }
        if text(reply.payload) != subject || subject != "echo.a" {
          wrong = Wrong(description: "the request '\(subject)' has another's reply")
        }
      }
    }
  }

  private func take(_ messages: [StreamMessage]) {
    restartsWhenGiven = reader?.restarts ?? 0
    for message in messages {
      let index = given.count
      given.append(message)
      guard case .after = start else { continue }
      if index >= server.log.count || message.sequence != UInt64(index + 1)
        || message.payload != server.log[index].payload
        || message.subject != server.log[index].subject
      {
        wrong = Wrong(description: "message \(message.sequence) in place \(index + 1)")
      }
    }
  }
}
