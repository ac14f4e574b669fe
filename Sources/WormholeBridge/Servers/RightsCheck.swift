internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// Tries the rights that a machine can try alone, one after the other; stores nothing.
///
/// A server refuses a right with an error. A leaf does not: it drops the message, or states that no
/// program listens. Servers without a leader are as silent. So a right counts as missing only if
/// the leader of the stream has answered after each of several attempts.
///
/// The subscriptions, `whb`, `whm` and replies need another machine: ``RightsProof`` has them.
final class RightsCheck {
  enum Verdict: Equatable {
    case works
    case missing(String)
    /// No reply, and the leader of the stream is silent, too.
    case unknown(String)
  }

  private struct Probe {
    let right: MachineRights.Right
    /// Its leader has to reply before silence counts.
    let stream: String
    let send: (@escaping (RelayFailure?) -> Void) -> Void
  }

  private(set) var verdicts: [(right: MachineRights.Right, verdict: Verdict)] = []
  var isDone: Bool { verdicts.count == probes.count }
  /// When ``proceed(_:)`` has work though nothing arrives.
  private(set) var deadline: Instant?

  private let jetStream: JetStream
  private var probes: [Probe] = []
  private var attempt = 1
  private var isWaiting = false

  private static let attempts = 5
  private static let requestTime = Duration.seconds(3)
  /// No message has this number, so the servers store nothing.
  private static let noSequence: UInt64 = 1 << 52

  init(_ jetStream: JetStream, _ subjects: Subjects, _ machine: String, _ rights: MachineRights) {
    self.jetStream = jetStream
    let flows = subjects.flowStream(to: machine)
    let flow = subjects.flow(from: machine, to: machine)
    let prefix = jetStream.prefix
    func add(
      _ purpose: String, _ stream: String,
      _ send: @escaping (@escaping (RelayFailure?) -> Void) -> Void
    ) {
      guard let right = rights.rights.first(where: { $0.purpose == purpose }) else { return }
      probes.append(Probe(right: right, stream: stream, send: send))
    }
    func publish(_ purpose: String, _ subject: String, _ stream: String) {
      add(purpose, stream) { handler in
        jetStream.publish(
          subject, expectedLast: Self.noSequence, [], within: Self.requestTime
        ) { handler($0.failure) }
      }
    }
    func request(_ purpose: String, _ subject: String, _ body: String, _ stream: String) {
      add(purpose, stream) { handler in
        jetStream.connection.request(
          "\(prefix).\(subject)", Array(body.utf8), within: Self.requestTime
        ) { handler($0.failure) }
      }
    }
    request("notice streams that were restored from a backup", "STREAM.INFO.\(flows)", "", flows)
    publish("send messages", flow, flows)
    publish(
      "record the starts of its bridge", subjects.machineRecord(machine), subjects.recordStream)
    // The first stream takes the subject, and no machine reads the subject.
    publish(
      "send messages through a leaf", "whf.0.\(machine)", Subjects.flowStream(0))
    if let member = try? subjects.memberRecord(machine) {
      publish("record the homes of members", member, subjects.recordStream)
    }
    if let channel = try? subjects.channelRecord(machine) {
      publish("record the homes of channels", channel, subjects.recordStream)
    }
    if let copy = try? subjects.channelCopy(machine) {
      publish("publish the contents of channels", copy, subjects.recordStream)
    }
    request("read the last bundle of its flows", "DIRECT.GET.\(flows).\(flow)", "", flows)
    // The body names another stream than the subject, so no consumer is made.
    let body = #"{"stream_name":"none","config":{"name":"probe","ack_policy":"none"}}"#
    request(
      "receive messages",
      "CONSUMER.CREATE.\(flows).probe.\(subjects.flows(to: machine))", body, flows)
    request(
      "read the records of the group",
      "CONSUMER.CREATE.\(subjects.recordStream).probe.\(subjects.allRecords)", body,
      subjects.recordStream)
  }

  /// Makes the next attempt if it is due.
  func proceed(_ now: Instant) {
    guard !isDone, !isWaiting, deadline ?? now <= now, jetStream.connection.state == .ready else {
      return
    }
    (isWaiting, deadline) = (true, nil)
    let probe = probes[verdicts.count]
    probe.send { [weak self] failure in self?.take(failure, probe) }
  }

  private func take(_ failure: RelayFailure?, _ probe: Probe) {
    switch failure?.kind {
    case nil, .jetStream, .malformed: end(.works)
    case .notPermitted: end(.missing(failure?.reason ?? ""))
    case .noResponders, .timedOut:
      let reason = failure?.reason ?? ""
      jetStream.streamInfo(probe.stream, within: Self.requestTime) { [weak self] result in
        guard let self else { return }
        guard (try? result.get()) != nil else { return end(.unknown(reason)) }
        guard attempt < Self.attempts else { return end(.missing(reason)) }
        isWaiting = false
        deadline = .now + .milliseconds(200) * (1 << attempt)
        attempt += 1
      }
    default: end(.unknown(failure?.reason ?? ""))
    }
  }

  private func end(_ verdict: Verdict) {
    verdicts.append((probes[verdicts.count].right, verdict))
    (attempt, isWaiting, deadline) = (1, false, nil)
  }

  /// The first right that is certainly missing.
  var missing: (right: MachineRights.Right, reason: String)? {
    for (right, verdict) in verdicts {
      if case .missing(let reason) = verdict { return (right, reason) }
    }
    return nil
  }
}

extension Result {
  fileprivate var failure: Failure? {
    if case .failure(let failure) = self { failure } else { nil }
  }
}
