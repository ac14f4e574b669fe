import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let wake = Verb(
    "wake", "start a member that is not running",
    [Operand("NAME", .one, .names(.members)), Operand("CMD", .optionalCommand)],
    [.timeout, .register, .setting, .directory, .show, .forget],
    [
      "If no process runs as NAME, starts the launch command of NAME and waits until it has "
        + "joined, at most ten seconds or the time in --timeout. If several processes wake NAME "
        + "at the same time, one command is started. Exits with 1 if nothing is registered or "
        + "the time limit passes, and with 69, at once, if the command ends before it has "
        + "joined; the error states how it ended.",
      "With --register, registers CMD with its arguments as the launch command of NAME; CMD must "
        + "join as NAME. CMD is started in a session of its own, in the root directory or in DIR, "
        + "with /dev/null as its standard streams and the container in WORMHOLE_CONTAINER. The "
        + "rest of its environment is the environment of the process that wakes NAME, with K set "
        + "to V for each --env. "
        + "The registration is stored in a file that only its user may write. If other users may "
        + "write the file, or if it belongs to another user, it is refused with 77.",
      "With --show, prints the registration: environment settings, program and arguments, "
        + "separated by tabs. With --forget, removes the registration. Both exit with 1 if "
        + "nothing is registered. With --json, --show, --register and --forget write one object.",
    ],
    [
      Example(
        "wormhole wake clock --register -- wormhole reply --as clock --exec date",
        "register the launch command of the member"),
      Example("wormhole wake clock --timeout 5", "start the member unless it runs"),
      Example("wormhole wake clock --show", "print the launch command"),
    ]
  ) { invocation in
    let name = invocation.operands[0]
    let actions: [Option] = [.register, .show, .forget]
    let action = try invocation.only(of: actions)
    if !invocation.has(.register), !invocation.command.isEmpty {
      throw Failure.usage("cannot wake: a command requires --register")
    }
    try invocation.require(.register, for: [.setting, .directory])
    try invocation.exclude(.timeout, actions)
    switch action?.name {
    case Option.register.name: return try invocation.registerLaunch(of: name)
    case Option.show.name: return try invocation.showStart(of: name)
    case Option.forget.name: return try invocation.forgetStart(of: name)
    default: return try invocation.wake(name)
    }
  }
}

extension Invocation {
  fileprivate func wake(_ name: String) throws -> Int32 {
    let timeout = try seconds(.timeout) ?? .seconds(10)
    let peer = try open(create: true).peer(name)
    try peer.wake(within: timeout)
    guard output.isJSON else {
      output.explain("'\(name)' runs")
      return 0
    }
    if let profile = try peer.profile { try output.ofDone.write(profile) }
    return 0
  }

  fileprivate func registerLaunch(of name: String) throws -> Int32 {
    guard let program = command.first else {
      throw Failure.usage("cannot wake: no command after '--'; try 'wormhole help wake'")
    }
    var environment: [String: String] = [:]
    for setting in values(.setting) {
      let parts = setting.parts(between: "=", most: 1, keepingEmpty: true)
      guard parts.count == 2, !parts[0].isEmpty else {
        throw Failure.usage(
          "cannot use \(Option.setting.usage): '\(setting)' is not of the form K=V")
      }
      environment[parts[0]] = parts[1]
    }
    try open(create: true).registerLaunch(
      of: name, program: program, arguments: Array(command.dropFirst()), environment: environment,
      directory: value(.directory))
    output.explain("the launch command of '\(name)' is registered")
    if output.isJSON {
      let start = try open(create: false) { $0.isForReading = true }.launchCommand(of: name)
      try output.ofDone.write(name, start)
    }
    return 0
  }

  fileprivate func showStart(of name: String) throws -> Int32 {
    let container = try open(create: false) { $0.isForReading = true }
    guard let start = try container.launchCommand(of: name) else { throw nothing("show", name) }
    let settings = start.environment.sorted { $0.key < $1.key }
    guard output.isJSON else {
      let words = settings.map { "\($0.key)=\($0.value)" } + [start.program] + start.arguments
      try output.write(line: try words.map { try $0.inOneLine() }.joined(separator: "\t"))
      return 0
    }
    try output.write(name, start)
    return 0
  }

  fileprivate func forgetStart(of name: String) throws -> Int32 {
    guard try open(create: false).removeLaunch(of: name) else { throw nothing("forget", name) }
    if output.isJSON { try output.ofDone.write(name, nil) }
    return 0
  }

  private func nothing(_ verb: String, _ name: String) -> WormholeError {
    WormholeError(
      .notFound, "\(verb) the launch command of", name, because: "no launch command is registered",
      hint: "register a launch command with 'wormhole wake \(name.shellWord) --register'")
  }
}

extension Output {
  /// Writes the registration of a member; only the name without a registration.
  fileprivate func write(_ name: String, _ start: LaunchCommand?) throws {
    try write(
      .start,
      [
        "member": .string(name), "program": (start?.program).map { .string($0) },
        "arguments": start.map { .array($0.arguments.map { .string($0) }) },
        "environment": start.map { .dictionary($0.environment.mapValues { .string($0) }) },
        "directory": (start?.directory).map { .string($0) },
      ])
  }
}

extension Option {
  static let register = Option("register", nil, "register the launch command of the member")
  static let setting = Option(
    "env", .any("K=V"), "environment variable of the command; may be repeated", isRepeatable: true)
  static let directory = Option("directory", .directory("DIR"), "working directory of the command")
  static let show = Option("show", nil, "print the launch command")
  static let forget = Option("forget", nil, "remove the launch command")
}
