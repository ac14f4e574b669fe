internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// The servers, as a bridge of this container sees them.
extension BridgeDoctor {
  /// How many machines are asked whether they answer.
  private static let mostAsked = 64

  mutating func inspectServers(_ place: Place?) {
    let subject = "servers"
    do {
      let dialog = try ServerDialog(
        settings, "wormhole-doctor", as: place?.machine,
        until: .now + max(settings.patience ?? .seconds(60), .seconds(1)))
      defer { dialog.connection.close() }
      try dialog.connect()
      inspect(dialog.connection.server)
      let deployment = try dialog.deployment()
      try inspectStreams(deployment, dialog)
      guard let place else { return }
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
    case .noResponders: "connect the leaf with the hub, and run 'wormhole bridge setup' once"
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
    try inspectRights(place, subjects, dialog)
    let records = try dialog.records(subjects)
    inspect(records.machines[place.machine]?.record, place)
    look(at: "members") { doctor throws(WormholeError) in
      try doctor.inspectHomes(records, place)
    }
    try askMachines(records, place, dialog)
  }

  private mutating func inspectRights(
    _ place: Place, _ subjects: Subjects, _ dialog: ServerDialog
  ) throws {
    let rights = try MachineRights(
      machine: place.machine, group: place.group,
      domain: dialog.connection.server.domain ?? "hub")
    let check = RightsCheck(dialog.jetStream, subjects, place.machine, rights)
    try dialog.turn(until: { check.isDone }, within: .seconds(40)) { check.proceed($0) }
    var works = 0
    for (right, verdict) in check.verdicts {
      switch verdict {
      case .works: works += 1
      case .missing(let reason):
        add(
          .problem, "rights", "the machine may not \(right.purpose): \(reason)",
          advice: "add \"\(right.subject)\" to the list '\(right.action.rawValue)' of the machine "
            + "on all servers")
      case .unknown(let reason):
        add(
          .problem, "rights", "no reply to the attempt to \(right.purpose): \(reason)",
          advice: "run this command again when the servers have a leader; then look for "
            + "\"\(right.subject)\" in the rights of the machine")
      }
    }
    add(.fine, "rights", "\(works) of \(rights.rights.count) rights were tried and work")
  }

  private mutating func inspect(_ record: MachineRecord?, _ place: Place) {
    guard let record else {
      return add(
        .note, "generation", "the servers have no start of this machine's bridge",
        advice: isServed ? nil : "start 'wormhole bridge'")
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
      guard let home = records.homes[name] else {
        add(
          .note, subject, "stands for machine \(proxy.machine ?? "?"), and has no home record",
          advice: "start the bridge of the machine: it writes the record again when the member runs"
        )
        continue
      }
      guard home.machine != proxy.machine else { continue }
      add(
        isServed ? .problem : .note, subject,
        "stands for machine \(proxy.machine ?? "?"), and its home is machine \(home.machine)",
        advice: isServed ? "look for the reason in the log of the bridge" : "start the bridge")
    }
    for name in try container.storage.names(in: .members) where !proxies.contains(name) {
      guard let home = records.homes[name], home.machine != place.machine,
        status["conflicts"]?[name] == nil
      else { continue }
      add(
        isServed ? .problem : .note, "member '\(name)'",
        "is a member of this machine, and its home is machine \(home.machine)",
        advice: isServed ? "let the member leave" : "start the bridge")
    }
  }

  /// Asks the bridge of every other machine for a reply, which takes the rights of both machines.
  private mutating func askMachines(
    _ records: GroupRecords, _ place: Place, _ dialog: ServerDialog
  ) throws {
    let machines = records.machines.keys.filter { $0 != place.machine }.sorted()
      .prefix(Self.mostAsked)
    var answered: [String: Bool] = [:]
    for machine in machines {
      dialog.connection.request(
        Subjects.word(.here, to: machine, from: place.machine), [], within: .seconds(3)
      ) { result in
        if case .success = result { answered[machine] = true } else { answered[machine] = false }
      }
    }
    try dialog.turn(until: { answered.count == machines.count })
    for machine in machines {
      if answered[machine] == true {
        add(.fine, "machine \(machine)", "its bridge answers")
      } else {
        add(
          .note, "machine \(machine)", "its bridge does not answer",
          advice: "start its bridge; if it runs, compare the rights of both machines with those "
            + "that 'wormhole bridge rights' prints")
      }
    }
  }
}
