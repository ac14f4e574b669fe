import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let get = Verb(
    "get", "print a channel's value",
    [Operand("CHANNEL", .one, .names(.channels))], [.plist, .raw, .wait, .timeout],
    [
      "Prints a string as text and other values as JSON, with a newline at the end. Data is "
        + "written as bytes, without a newline; with --raw, other values get no newline either. "
        + "With --json, writes one object: the value, its version, the time and the writer of "
        + "the change, and whether the value was recovered from damage. Types that JSON lacks "
        + "are written as {\"$date\": ...}, {\"$data\": ...} in base64, or {\"$real\": ...}.",
      "Exits with 1 if the channel has no value. With --wait, waits until a value is set.",
    ],
    [
      Example("wormhole get speed", "print the value"),
      Example("wormhole get speed --json", "the value with its version, time and writer"),
      Example("wormhole get answer --wait --timeout 5", "wait for a value, at most five seconds"),
      Example("wormhole get photo --raw >photo.png", "the bytes, unchanged"),
    ]
  ) { invocation in
    let name = invocation.operands[0]
    let form = try PrintedForm(invocation)
    guard let snapshot = try invocation.present(name), let value = snapshot.value else {
      throw Failure(
        WormholeError(.notFound, "read channel", name, because: "the channel has no value"))
    }
    let output = invocation.output
    if snapshot.metadata.isRecovered {
      output.tell("the latest value of channel '\(name)' is damaged; this is the previous value")
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
  /// Returns the channel's content; with `--wait`, as soon as the content is a value.
  fileprivate func present(_ name: String) throws -> UntypedSnapshot? {
    guard has(.wait) else {
      if has(.timeout) { throw Failure.usage("cannot get: --timeout requires --wait") }
      return try open(create: false) { $0.isForReading = true }.unshaped(name)
    }
    let deadline = try deadline(.timeout)
    // A waiting reader may be the first process, and makes the container.
    let container = try open(create: true)
    if let present = try container.unshaped(name), present.value != nil { return present }
    let channel = container.channel(name, of: PropertyListValue.self)
    let found = Monitor<Result<UntypedSnapshot, WormholeError>?>(nil)
    let watch = try channel.watch { snapshot in
      if snapshot.value != nil { found.signal { $0 = $0 ?? .success(.init(snapshot)) } }
    } failure: { error in
      found.signal { $0 = $0 ?? .failure(error) }
    }
    defer { watch.stop() }
    output.explain("waiting for a value of channel '\(name)'")
    guard let result = found.wait(until: deadline, { $0 }) else {
      throw WormholeError(
        .timedOut, "read channel", name, because: "no value arrived before the deadline")
    }
    return try result.get()
  }
}

extension Option {
  static let plist = Option("plist", nil, "print the value as a property list in XML")
  static let raw = Option("raw", nil, "do not add or remove a newline at the end")
  static let wait = Option("wait", nil, "wait until the channel has a value")
  static let timeout = Option("timeout", .any("S"), "time limit in seconds")
}
