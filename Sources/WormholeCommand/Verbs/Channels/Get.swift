import CommandLine
import PropertyLists
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let get = Verb(
    "get", "print the value of a channel",
    [Operand("CHANNEL", .one, .names(.channels))], [.plist, .raw, .wait, .timeout],
    [
      "Prints a string as it is and other values as JSON, with a line feed at the end; data is "
        + "written raw, and with --raw nothing is added to a string either. With --json, writes "
        + "one object: the value, its version, when it was sent and by whom, and whether it was "
        + "recovered from damage. What JSON lacks stands there as {\"$date\": ...}, "
        + "{\"$data\": ...} in base64, or {\"$real\": ...}.",
      "Exits with 1 if there is no value. With --wait it waits until there is one.",
    ],
    [
      Example("wormhole get speed", "the value"),
      Example("wormhole get speed --json", "the value and what is known of it"),
      Example("wormhole get answer --wait --timeout 5", "wait for a value, five seconds at most"),
      Example("wormhole get photo --raw >photo.png", "byte for byte"),
    ]
  ) { invocation in
    let name = invocation.operands[0]
    let form = try PrintedForm(invocation)
    guard let snapshot = try invocation.present(name), let value = snapshot.value else {
      throw Failure(
        WormholeError(.notFound, "read channel", name, because: "nothing is there"))
    }
    let output = invocation.output
    if snapshot.metadata.isRecovered {
      output.tell("the latest value of channel '\(name)' is damaged; this is the one before it")
    }
    switch form {
    case .object: try output.write(object: snapshot)
    case .plist: try output.write(try value.written(as: .xml, limits: .output))
    case .text(let raw): try output.write(try value.printed(raw: raw))
    }
    return 0
  }
}

/// How `get` prints.
private enum PrintedForm {
  case object, plist
  case text(raw: Bool)

  init(_ invocation: Invocation) throws(Failure) {
    switch (invocation.output.isJSON, invocation.has(.plist), invocation.has(.raw)) {
    case (false, false, let raw): self = .text(raw: raw)
    case (true, false, false): self = .object
    case (false, true, false): self = .plist
    default: throw .usage("cannot get: --json, --plist and --raw exclude each other")
    }
  }
}

extension Invocation {
  /// What the channel holds; with `--wait`, as soon as that is a value.
  fileprivate func present(_ name: String) throws -> Wormhole.UntypedSnapshot? {
    guard has(.wait) else {
      if has(.timeout) { throw Failure.usage("cannot get: --timeout goes with --wait") }
      return try open(create: false) { $0.isForReading = true }.unshaped(name)
    }
    let deadline = try deadline(.timeout)
    // One who may come before the others makes the place where they meet.
    let hole = try open(create: true)
    if let present = try hole.unshaped(name), present.value != nil { return present }
    let channel = hole.channel(name, of: PropertyListValue.self)
    let found = Monitor<Result<Wormhole.UntypedSnapshot, WormholeError>?>(nil)
    let watch = try channel.watch { snapshot in
      if snapshot.value != nil { found.signal { $0 = $0 ?? .success(.init(snapshot)) } }
    } failure: { error in
      found.signal { $0 = $0 ?? .failure(error) }
    }
    defer { watch.stop() }
    output.explain("waiting for a value of channel '\(name)'")
    guard let result = found.wait(until: deadline, { $0 }) else {
      throw WormholeError(.timedOut, "read channel", name, because: "no value came in time")
    }
    return try result.get()
  }
}

extension Option {
  static let plist = Option("plist", nil, "print the value as a property list in XML")
  static let raw = Option("raw", nil, "add and take off no line feed at the end")
  static let wait = Option("wait", nil, "wait until there is a value")
  static let timeout = Option("timeout", .any("S"), "give up after that many seconds")
}
