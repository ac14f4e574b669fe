internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// The servers, as a bridge of this container sees them.
extension BridgeDoctor {
  mutating func inspectServers(_ place: Place?) {
    let subject = "servers"
    do {
      let limit = max(settings.patience ?? .seconds(60), .seconds(1))
      let dialog = try ServerDialog(
        settings, "wormhole-doctor", as: place?.machine, until: .now + limit)
      defer { dialog.connection.close() }
      try dialog.connect()
      inspect(dialog.connection.server)
      let deployment = try dialog.deployment()
      dialog.extend(to: .now + limit)
      try inspectStreams(deployment, dialog)
      guard let place else { return }
      dialog.extend(to: .now + limit)
      try inspectMachine(place, deployment, dialog)
    } catch let end as BridgeEnd {
      add(.problem, subject, end.reason, advice: end.hint)
    } catch let failure as RelayFailure {
      add(.problem, subject, failure.reason, advice: Self.advice(failure))
    } catch {
      add(.problem, subject, "\(error)")
    }
  }

  private static func advice(_ failure: RelayFailure) -> String? {
    switch failure.kind {
    case .unreachable: "start the leaf, or name its address with '--nats'"
    case .refused: "name the file with the leaf's token with '--token-file'"
    case .noResponders: "connect the leaf with the hub, or wait until the servers have a leader"
    case .timedOut:
      "wait until the servers have a leader; if they have one, this machine lacks the right to "
        + "subscribe to its '_INBOX', see 'wormhole bridge rights'"
    case .notPermitted: "give this machine the rights that 'wormhole bridge rights' prints"
    default: nil
    }
  }

  private mutating func inspect(_ server: ServerInfo) {
    let version = server.version?.description ?? "unknown"
    add(.fine, "servers", "version \(version), domain '\(server.domain ?? "")'")
    if !server.requiresAuthorization {
      add(
        .problem, "servers", "no token is asked for, so every local user can send",
        advice: "set 'authorization { token: … }' at the leaf")
    }
    if server.maxPayload < Bridge.leastPayload {
      add(
        .problem, "servers", "messages have at most \(server.maxPayload) bytes",
        advice: "set 'max_payload' to 1MB on all servers and leaves")
    }
  }

  // MARK: Streams

  private mutating func inspectStreams(_ deployment: Deployment, _ dialog: ServerDialog) throws {
    for wanted in deployment.streams(replicas: 1) {
      let info: StreamInfo
      do {
        info = try dialog.result { handler in
          dialog.jetStream.streamInfo(wanted.name) { handler($0) }
        }
      } catch let failure as RelayFailure {
        let isMissing = failure.errorCode == JetStreamError.noStream
        add(
          .problem, "stream \(wanted.name)", isMissing ? "is missing" : failure.reason,
          advice: isMissing ? "run 'wormhole bridge setup' again" : Self.advice(failure))
        continue
      }
      let differences = Self.differences(info.settings, wanted)
      if differences.isEmpty {
        let copies = info.replicas == 1 ? "on one server" : "on \(info.replicas) servers"
        add(
          info.replicas == 1 ? .note : .fine, "stream \(wanted.name)",
          "\(info.messages) messages, \(copies)",
          advice: info.replicas == 1 ? "use three servers: then one may fail" : nil)
      } else {
        add(
          .problem, "stream \(wanted.name)",
          "is not as 'wormhole bridge setup' makes it: " + differences.joined(separator: ", "),
          advice: "set these values with the servers' own tool")
      }
    }
  }

  private static func differences(_ found: StreamSettings, _ wanted: StreamSettings) -> [String] {
    var differences: [String] = []
    func compare<Value: Equatable>(_ name: String, _ found: Value, _ wanted: Value) {
      if found != wanted { differences.append("\(name) is \(found) and not \(wanted)") }
    }
    func seconds(_ time: Duration?) -> String {
      time.map { "\(Int($0 / .seconds(1)))s" } ?? "unlimited"
    }
    compare("subjects", found.subjects, wanted.subjects)
    compare("max_age", seconds(found.maxAge), seconds(wanted.maxAge))
    compare("max_msgs_per_subject", found.maxPerSubject, wanted.maxPerSubject)
    compare("allow_direct", found.allowsDirect, wanted.allowsDirect)
    return differences
  }

  // MARK: The machine

  private mutating func inspectMachine(
    _ place: Place, _ deployment: Deployment, _ dialog: ServerDialog
  ) throws {
    let subjects = try Subjects(group: place.group, deployment)
    let rights = try MachineRights(
      machine: place.machine, group: place.group,
      domain: dialog.connection.server.domain ?? "hub")
    var proof = RightsProof(rights)
    // The deployment was read over this connection.
    proof.works("read how the servers are set up")
    proof.works("receive replies")
    try tryRights(rights, place, subjects, dialog, &proof)
    let records = try dialog.records(subjects)
    if records.isEmpty {
      proof.cannotTry("receive messages and records", because: "the group has no record yet")
    } else {
      proof.works("receive messages and records")
    }
    inspect(records.machines[place.machine]?.record, place)
    look(at: "members") { doctor throws(WormholeError) in
      try doctor.inspectHomes(records, place)
    }
    try askMachines(records, place, subjects, dialog, &proof)
    report(proof)
  }

  private mutating func inspect(_ record: MachineRecord?, _ place: Place) {
    guard let record else {
      return add(
        .note, "generation", "the servers have no start of this machine's bridge",
        advice: isServed ? nil : "start 'wormhole bridge'")
    }
    guard record.fate == nil else {
      return add(
        .problem, "generation", "this machine was given up with 'wormhole bridge evict'",
        advice: "make this container a new machine with 'wormhole bridge rejoin'")
    }
    guard place.nonces.contains(record.nonce) else {
      return add(
        .problem, "generation",
        "another copy of this container has continued, or it was restored from a backup",
        advice: "use the other copy, or make this one a new machine with 'wormhole bridge rejoin'")
    }
    if record.generation < place.generation, !isServed {
      add(.note, "generation", "the servers have forgotten the latest starts of the bridge")
    }
  }

  private mutating func inspectHomes(
    _ records: GroupRecords, _ place: Place
  ) throws(WormholeError) {
    let carrier = try Carrier(container)
    var proxies: Set<String> = []
    for proxy in try carrier.proxies() {
      guard case .member(let name) = proxy.resident else { continue }
      proxies.insert(name)
      let subject = "member '\(name)'"
      guard let home = records.homes[name]?.machine else {
        add(
          .note, subject, "stands for machine \(proxy.machine ?? "?"), and has no home record",
          advice: "start the bridge of the machine: it writes the record again when the member runs"
        )
        continue
      }
      guard home != proxy.machine else { continue }
      add(
        isServed ? .problem : .note, subject,
        "stands for machine \(proxy.machine ?? "?"), and its home is machine \(home)",
        advice: isServed ? "look for the reason in the log of the bridge" : "start the bridge")
    }
    for name in try container.storage.names(in: .members) where !proxies.contains(name) {
      guard let home = records.homes[name]?.machine, home != place.machine,
        status["conflicts"]?[name] == nil
      else { continue }
      add(
        isServed ? .problem : .note, "member '\(name)'",
        "is a member of this machine, and its home is machine \(home)",
        advice: isServed ? "let the member leave" : "start the bridge")
    }
  }
}
