import FoundationEssentials
import Wormhole
import WormholeBridge
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeRelay
import WormholeSyscalls

extension Verb {
  static let bridge = Verb(
    "bridge", "carry members and messages between machines",
    [
      Operand("ACTION", .optional, .words(BridgeAction.allCases.map(\.rawValue))),
      Operand("NAME", .optional, .any),
    ],
    [
      .nats, .tokenFile, .domain, .openServer, .sharedAs, .replicas, .flows, .states, .drop,
      .machine, .newHome, .mayWake, .messages, .seed, .timeout,
    ],
    [
      "Without ACTION, carries messages between this container and the containers of the same "
        + "group on other machines, over NATS servers, until it is ended. Programs do not change: "
        + "they send to a member of another machine as to any other. One bridge serves a "
        + "container; a second one waits until the first one ends.",
      "The group's name is the one in --group, or, for a container with a directory, the one in "
        + "--shared-as. The bridge connects to a server on this machine only: a leaf, which "
        + "carries encryption and credentials to the servers. The article 'Between machines' "
        + "shows how to set them up.",
      "'setup' creates the streams on the servers, once for all machines and groups. 'status' "
        + "prints what the container's bridge is doing. 'rejoin' makes a container that was "
        + "refused as a copy a machine of its own: messages in transit are sent again, marked as "
        + "redelivered, or, with --drop, become dead letters.",
      "Programs of other machines may start the members in --may-wake, by the launch commands "
        + "that are registered here, and no others.",
      "'channel NAME' makes this machine the home of a channel: the other machines of the group "
        + "get copies of it, and their changes are decided here. 'channel NAME --to M' moves the "
        + "home to another machine, as soon as the bridge here has a connection.",
      "'queue NAME' makes this machine the home of a queue: messages of programs of other machines "
        + "come here, and the workers there get messages of the queue. 'queue NAME --to M' moves "
        + "the home to another machine, with all that waits.",
      "'doctor' checks everything that the bridge needs: its files and flows, the servers, their "
        + "streams, and every right of the machine. Each finding states the remedy; it exits with "
        + "1 if there is a problem. 'rights' prints the rights of a machine, as lines of the "
        + "servers' configuration.",
      "'move NAME --to M' moves the home of a member that does not run from this machine to "
        + "another one. 'evict NAME' gives up a machine that is lost permanently, with the "
        + "rights of an operator: the names of its members are free, and what is in transit to it "
        + "is put back, or, with --drop, all that waits for it becomes dead letters. If the "
        + "machine reappears, its bridge ends with 78.",
      "'trial' shows on this machine whether all of this holds: three servers, three machines in "
        + "network namespaces, and processes that are killed, suspended and cut off while they "
        + "send. It compares what has arrived with what was sent, and exits with 1 if a message "
        + "was lost, repeated or reordered. It needs root, the program 'nats-server', in PATH or "
        + "in WORMHOLE_NATS_SERVER, and the program 'WormholeTrial' beside this command. Without "
        + "them it does nothing, and exits with 77, 69 and 127.",
      "Exits with 69 if no server is there within the time in --timeout, with 75 if another bridge "
        + "has continued as this machine, with 77 if the servers refuse the token or a right, and "
        + "with 78 if the container is a copy or the servers cannot be used.",
    ],
    [
      Example("wormhole bridge setup --token-file token", "create the streams, once"),
      Example("wormhole bridge --group cinema --token-file token", "carry until it is ended"),
      Example("wormhole bridge status --group cinema", "print the flows and their ages"),
      Example(
        "wormhole bridge channel seats --group cinema", "share a channel of this machine"),
      Example("wormhole bridge queue jobs --group cinema", "share a queue of this machine"),
      Example(
        "wormhole bridge doctor --group cinema --token-file token", "check what the bridge needs"),
      Example("wormhole bridge rights --group cinema", "print the rights of this machine"),
      Example(
        "wormhole bridge move bob --to 0123456789abcdef --group cinema --token-file token",
        "move the home of a member"),
      Example(
        "wormhole bridge evict 0123456789abcdef --group cinema --token-file token",
        "give up a lost machine"),
      Example("wormhole bridge trial --messages 20000", "try it for six minutes, as root"),
    ],
    action: "carry between machines"
  ) { invocation in
    guard !invocation.operands.isEmpty else { return try invocation.runBridge() }
    let action: BridgeAction = try invocation.word { "\($0) a bridge: the actions are" }
    if invocation.operands.count > 1, ![.move, .evict, .channel, .queue].contains(action) {
      throw invocation.refusal("unexpected argument '\(invocation.operands[1])'")
    }
    switch action {
    case .run: return try invocation.runBridge()
    case .setup: return try invocation.setUpServers()
    case .status: return try invocation.bridgeStatus()
    case .rejoin: return try invocation.rejoin()
    case .channel:
      return try invocation.addHome(
        of: "channel", Bridge.addChannel(_:of:), move: Bridge.moveChannel(_:to:of:))
    case .queue:
      return try invocation.addHome(
        of: "queue", Bridge.addQueue(_:of:), move: Bridge.moveQueue(_:to:of:))
    case .doctor: return try invocation.checkBridge()
    case .rights: return try invocation.printRights()
    case .move: return try invocation.moveMember()
    case .evict: return try invocation.evictMachine()
    case .trial: return try invocation.tryBridges()
    }
  }
}

enum BridgeAction: String, CaseIterable {
  case run, setup, status, doctor, rights, channel, queue, move, evict, rejoin, trial
}

extension Option {
  fileprivate static let nats = Option(
    "nats", .any("URL"), "server on this machine; nats://127.0.0.1:4222 by default")
  fileprivate static let tokenFile = Option(
    "token-file", .file("FILE"), "file with the server's token, readable by its owner alone")
  fileprivate static let domain = Option(
    "domain", .any("D"), "domain of the servers' JetStream, if the server does not state it")
  fileprivate static let openServer = Option(
    "open-server", nil, "accept a server without a token, through which every local user can speak")
  fileprivate static let sharedAs = Option(
    "shared-as", .any("G"), "name of the group on all machines; by default the one in --group")
  fileprivate static let drop = Option(
    "drop", nil, "dead-letter messages in transit in place of sending them again")
  fileprivate static let machine = Option(
    "machine", .any("M"), "machine with the rights; by default the container's")
  fileprivate static let newHome = Option("to", .any("M"), "machine that becomes the home")
  fileprivate static let mayWake = Option(
    "may-wake", .member("NAME"), "member that programs of other machines may start",
    isRepeatable: true)
  fileprivate static let replicas = Option(
    "replicas", .any("N"), "number of servers that have each message; 3 by default")
  fileprivate static let flows = Option(
    "flows", .any("N"), "number of streams for messages; 1 by default, enough for 800 machines")
  fileprivate static let states = Option(
    "states", .any("N"), "number of streams for the homes of members; 1 by default")
}

extension BridgeEnd: FailureTold {
  var failure: Failure {
    let status: ExitCode =
      switch kind {
      case .unavailable: .unavailable
      case .fenced: .tryAgain
      case .noRights: .refused
      case .refused: .configuration
      }
    return Failure(status, "bridge", "cannot carry between machines: \(self)")
  }
}

extension Invocation {
  private func settings() throws -> Bridge.Settings {
    let address: RelayAddress
    do throws(RelayFailure) {
      address = try RelayAddress(value(.nats) ?? "nats://127.0.0.1:4222")
    } catch {
      throw Failure.usage(error.reason)
    }
    var settings = Bridge.Settings(group: value(.sharedAs) ?? value(.group) ?? "", address: address)
    settings.token = try value(.tokenFile).map { path throws(WormholeError) in
      try TokenFile.read(path)
    }
    settings.domain = value(.domain)
    settings.allowsOpenServer = has(.openServer)
    settings.patience = try seconds(.timeout)
    settings.mayWake = Set(values(.mayWake))
    return settings
  }

  fileprivate func runBridge() throws -> Int32 {
    let settings = try settings()
    guard !settings.group.isEmpty else {
      throw Failure.usage(
        "cannot carry between machines: the group is not named; use --group ID, or, with "
          + "--container, --shared-as G")
    }
    let news = try BridgeNews()
    try Interruption.prepare()
    Interruption.endInOrder {
      ServiceManager.notify("STOPPING=1")
      news.stop()
    }
    let output = output
    let container = try open(create: true) { options in
      // A bridge runs unattended, and its troubles are the operator's.
      options.log = { entry in
        if entry.level >= .warning { output.warn(entry.text) } else { output.explain(entry.text) }
      }
    }
    let lock = try BridgeLock.take(container, news) {
      output.tell("another bridge serves the container; waiting until it ends")
    }
    guard let lock else { return 0 }
    let bridge = try Bridge(container, settings, news, lock) {
      output.tell("carrying between machines as group '\(settings.group)'")
      ServiceManager.notify("READY=1")
    }
    try bridge.run()
    return 0
  }

  fileprivate func setUpServers() throws -> Int32 {
    let deployment = Deployment(
      flows: try number(.flows, least: 1) ?? 1, states: try number(.states, least: 1) ?? 1)
    let lines = try ServerSetup.run(
      settings(), deployment, replicas: number(.replicas, least: 1) ?? 3)
    for line in lines { output.tell(line) }
    return 0
  }

  fileprivate func rejoin() throws -> Int32 {
    let count = try MachineRejoin.run(open(create: false), drops: has(.drop))
    let fate = has(.drop) ? "dead-lettered" : "sent again"
    output.tell("the container is a new machine; messages in transit \(fate): \(count)")
    return 0
  }

  fileprivate func addHome(
    of noun: String, _ add: (String, SharedContainer) throws -> Bool,
    move: (String, String, SharedContainer) throws -> Void
  ) throws -> Int32 {
    let name = try named(noun)
    if let to = value(.newHome) {
      let machine = try machineName(to)
      try move(name, machine, open(create: false))
      output.tell("the bridge moves the home of \(noun) '\(name)' to machine \(machine)")
      return 0
    }
    let what = try add(name, open(create: true)) ? "is now" : "was already"
    output.tell("this machine \(what) the home of \(noun) '\(name)'")
    return 0
  }

  fileprivate func checkBridge() throws -> Int32 {
    let findings = BridgeDoctor.run(try open(create: false), try settings())
    for finding in findings { try output.write(finding) }
    return findings.contains { $0.severity == .problem } ? ExitCode.no.rawValue : 0
  }

  fileprivate func printRights() throws -> Int32 {
    let (machine, group): (String, String)
    if let named = value(.machine) {
      machine = try machineName(named)
      group = try groupName()
    } else {
      let place = try BridgeStatus.identity(of: open(create: false))
      (machine, group) = (place.machine, place.group)
    }
    let rights = try MachineRights(
      machine: machine, group: group, domain: value(.domain) ?? "hub")
    guard output.isJSON else {
      for line in rights.lines { try output.write(line: line) }
      return 0
    }
    for right in rights.rights {
      try output.write(
        .right,
        [
          "action": .string(right.action.rawValue), "subject": .string(right.subject),
          "purpose": .string(right.purpose),
        ])
    }
    return 0
  }

  /// The second operand, which only some actions have.
  private func named(_ what: String) throws -> String {
    guard operands.count == 2 else { throw refusal("the \(what) is not named") }
    return operands[1]
  }

  /// The error of an invalid command line with an action.
  fileprivate func refusal(
    _ cause: String, next: String = "try 'wormhole help bridge'"
  ) -> Failure {
    .usage("cannot run 'bridge \(operands[0])': \(cause); \(next)")
  }

  private func machineName(_ name: String) throws -> String {
    guard Incarnation(rawValue: name) != nil else {
      throw refusal(
        "'\(name)' is not a machine: a machine has 16 hexadecimal digits",
        next: "list the machines with 'wormhole bridge status'")
    }
    return name
  }

  fileprivate func moveMember() throws -> Int32 {
    let member = try named("member")
    guard let to = value(.newHome) else {
      throw Failure.usage("cannot move '\(member)': the new home is not named; use --to M")
    }
    let machine = try machineName(to)
    let isMoved = try HomeMove.run(open(create: false), settings(), member, to: machine)
    output.tell(
      isMoved
        ? "the home of '\(member)' is machine \(machine) from now on"
        : "the home of '\(member)' is machine \(machine) already")
    return 0
  }

  fileprivate func evictMachine() throws -> Int32 {
    let machine = try machineName(named("machine"))
    var settings = try settings()
    settings.group = try groupName()
    let count = try MachineEviction.run(settings, machine, drops: has(.drop))
    output.tell("machine \(machine) was given up; names that are free now: \(count)")
    return 0
  }

  private func groupName() throws -> String {
    guard let group = value(.sharedAs) ?? value(.group), !group.isEmpty else {
      throw refusal("the group is not named", next: "use --group ID, or --shared-as G")
    }
    return group
  }

  fileprivate func bridgeStatus() throws -> Int32 {
    let container = try open(create: false)
    guard let status = try BridgeStatus.read(container) else {
      throw WormholeError(
        .notFound, "show", "bridge", because: "no bridge has ever served this container")
    }
    if output.isJSON {
      try output.write(.bridge, status.object)
    } else {
      // Other machines have given names and reasons.
      for line in status.lines { try output.write(line: line.inOneLine()) }
    }
    return 0
  }
}
