import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let get = Verb(
    "get", "print the values of channels",
    [Operand("CHANNEL", .optionalMany, .names(.channels))],
    [.namePrefix, .plist, .raw, .wait, .timeout],
    [
      "Prints a string as text and other values as JSON, with a newline at the end. Data is "
        + "written as bytes, without a newline; with --raw, other values get no newline either. "
        + "With --json, writes one object: the value, its version, the time and the writer of "
        + "the change, and whether the value was recovered from damage. Types that JSON lacks "
        + "are written as {\"$date\": ...}, {\"$data\": ...} in base64, or {\"$real\": ...}.",
      "With several channels, or with --prefix, writes a line for each: the channel's name, a tab, "
        + "and the value in the form of 'watch'. --prefix selects the channels whose names begin "
        + "with P and that have a value.",
      "Exits with 1 if a channel has no value, after the values of the others. With --wait, waits "
        + "until each channel has a value.",
    ],
    [
      Example("wormhole get speed", "print the value"),
      Example("wormhole get speed --json", "the value with its version, time and writer"),
      Example("wormhole get speed film", "two values, each with its name"),
      Example("wormhole get --prefix seat.", "the channels whose names begin with 'seat.'"),
      Example("wormhole get answer --wait --timeout 5s", "wait for a value, at most five seconds"),
      Example("wormhole get photo --raw >photo.png", "the bytes, unchanged"),
    ]
  ) { invocation in
    let form = try PrintedForm(invocation)
    try invocation.checkChannels()
    let deadline = try invocation.deadline(.timeout)
    // A waiting reader may be the first process, and makes the container.
    let container = try invocation.open(create: invocation.has(.wait)) {
      $0.isForReading = !invocation.has(.wait)
    }
    var failure: Failure?
    for name in try invocation.channels(in: container) {
      do {
        try invocation.print(name, in: container, form, until: deadline)
      } catch let error as WormholeError where form == .line {
        // The other channels may be readable.
        var (told, last) = (failure, Failure(error))
        // The status 1 states that a value is missing, and must not hide that another is damaged.
        if let before = failure, last.isStatusOfNo, !before.isStatusOfNo {
          (told, last) = (last, before)
        }
        if let told { invocation.output.tell(told) }
        failure = last
      }
    }
    if let failure { throw failure }
    return 0
  }
}

extension Failure {
  fileprivate var isStatusOfNo: Bool { status == ExitCode.no.rawValue }
}

/// How `get` prints.
private enum PrintedForm: Equatable {
  case object, plist
  case text(raw: Bool)
  /// A line with the name and the value, or an object, for each of several channels.
  case line

  init(_ invocation: Invocation) throws(Failure) {
    let isOne = !invocation.has(.namePrefix) && invocation.operands.count == 1
    if !isOne, let option = [Option.plist, .raw].first(where: invocation.has) {
      throw .usage("cannot get: --\(option.name) requires one channel")
    }
    switch (invocation.output.isJSON, invocation.has(.plist), invocation.has(.raw)) {
    case (_, false, false) where !isOne: self = .line
    case (false, false, let raw): self = .text(raw: raw)
    case (true, false, false): self = .object
    case (false, true, false): self = .plist
    default: throw .usage("cannot get: --json, --plist and --raw exclude each other; use one")
    }
  }
}

extension Invocation {
  fileprivate func checkChannels() throws(Failure) {
    if has(.namePrefix), !operands.isEmpty || has(.wait) {
      throw .usage("cannot get: --prefix excludes CHANNEL and --wait")
    }
    if operands.isEmpty, !has(.namePrefix) {
      throw .usage("cannot get: CHANNEL is missing; try 'wormhole help get'")
    }
    try require(.wait, for: [.timeout])
  }

  /// Returns the names of the channels to print.
  fileprivate func channels(in container: SharedContainer) throws -> [String] {
    guard let prefix = value(.namePrefix) else { return operands }
    let names = try container.channels(prefix: prefix)
    guard !names.isEmpty else {
      throw WormholeError(
        .notFound, "read channels", prefix, because: "no channel with this prefix has a value")
    }
    return names
  }

  fileprivate func print(
    _ name: String, in container: SharedContainer, _ form: PrintedForm, until deadline: Instant?
  ) throws {
    guard let snapshot = try present(name, in: container, until: deadline),
      let value = snapshot.value
    else {
      // A channel of a prefix may have been cleared since the names were read.
      if has(.namePrefix) { return }
      throw WormholeError(.notFound, "read channel", name, because: "the channel has no value")
    }
    if snapshot.metadata.isRecovered {
      output.tell("the latest value of channel '\(name)' is damaged; this is the previous value")
    }
    switch form {
    case .object: try output.write(object: snapshot)
    case .plist: try output.write(try value.written(as: .xml, limits: .output))
    case .text(let raw): try output.write(try value.printed(raw: raw))
    case .line: try LineWriter(self).write(WrittenLine(snapshot, named: true))
    }
  }

  /// Returns the channel's content; with `--wait`, as soon as the content is a value.
  private func present(
    _ name: String, in container: SharedContainer, until deadline: Instant?
  ) throws -> UntypedSnapshot? {
    guard has(.wait) else { return try container.unshaped(name) }
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
  static let wait = Option("wait", nil, "wait until the channel has a value")
}
