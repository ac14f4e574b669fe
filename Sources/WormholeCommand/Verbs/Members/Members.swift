import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists

extension Verb {
  static let members = Verb(
    "members", "list the members and their state", [], [],
    [
      "A member is a name under which a program has joined. Prints a line for each name ever "
        + "joined, in order: the name, the state (running, stopped or not running), the machine if "
        + "its home is another one, the program and its process ID if the member runs here, the "
        + "time of the last join, and the info that the member publishes.",
      "The kernel reports whether a member runs, so a killed member is never listed as running. "
        + "The suspension of a member is visible only in the same PID namespace. With --json, "
        + "writes one object per member.",
    ],
    [
      Example("wormhole members", "list all members"),
      Example("wormhole members --json", "one object per member, for programs"),
    ],
    action: "list the members"
  ) { invocation in
    let container = try invocation.open(create: false) { $0.isForReading = true }
    let members = try container.members()
    var listing = Listing(
      invocation.output, ["NAME", "STATE", "PROGRAM", "PROCESS", "JOINED", "INFO"], numbers: [3])
    for member in members { try invocation.output.write(member, in: &listing) }
    try listing.finish()
    return 0
  }
}

extension Output {
  func write(_ member: Profile, in listing: inout Listing) throws {
    if isJSON { return try write(member) }
    let machine = try member.machine.map { try "on \($0.isEmpty ? "?" : $0)".inOneLine() }
    let info = try member.info.sorted { $0.key < $1.key }.map { try "\($0)=\($1)".inOneLine() }
    try listing.add(
      [
        .init(member.name.inOneLine()), .state(member.state), .init(machine ?? member.program),
        .init(member.isRunning && machine == nil ? "\(member.processID)" : ""),
        .init(DateText.format(member.joinedAt, fraction: false) ?? "-"),
        .init(info.joined(separator: " ")),
      ], bare: bareLine(member))
  }

  private func bareLine(_ member: Profile) throws -> String {
    var words = [try member.name.inOneLine(), member.state]
    if let machine = member.machine {
      words.append(try "on machine \(machine.isEmpty ? "?" : machine)".inOneLine())
    } else if member.isRunning {
      words.append("\(member.program) (process \(member.processID))")
    }
    words += DateText.format(member.joinedAt, fraction: false).map { ["joined \($0)"] } ?? []
    for (key, value) in member.info.sorted(by: { $0.key < $1.key }) {
      words.append(try "\(key)=\(value)".inOneLine())
    }
    return words.joined(separator: "\t")
  }

  func write(_ member: Profile) throws {
    guard isJSON else { return try write(line: bareLine(member)) }
    try write(
      .member,
      [
        "member": .string(member.name), "incarnation": .string(member.incarnation.rawValue),
        "state": .string(member.state), "running": .boolean(member.isRunning),
        "machine": member.machine.map { .string($0) },
        "process": .integer(Int64(member.processID)), "program": .string(member.program),
        "info": .dictionary(member.info.mapValues { .string($0) }),
        "stopped": member.isStopped.map { .boolean($0) },
        "joined": DateText.format(member.joinedAt).map { .string($0) },
      ])
  }
}

extension Profile {
  var state: String {
    isRunning ? isStopped == true ? "stopped" : "running" : "not running"
  }
}
