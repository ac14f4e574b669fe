import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let update = Verb(
    "update", "change a channel's value atomically",
    [Operand("CHANNEL", .one, .names(.channels))], [.add, .exec, .type, .raw, .power],
    [
      "With --add, adds N to the number in the channel, or to 0 if the channel has no value, and "
        + "prints the sum. A text that is a number counts as the number, and becomes one. "
        + "With --json, writes the channel with its new version and value.",
      "With --exec, runs CMD in a shell while no other process can change the channel. CMD reads "
        + "the old value on standard input, in the form of 'get', or nothing if the channel has "
        + "no value. The output of CMD is the new value; its type is the type of the old value, "
        + "or the type in --type. A newline at the end of a string is removed. With --raw, no "
        + "newline is added or removed. If CMD fails, the value stays unchanged and this command "
        + "ends with the status of CMD. WORMHOLE_CHANNEL contains the channel's name.",
      "CMD cannot change the same container: the change would wait for this update to end, and "
        + "is refused at once.",
      "An update that is suspended loses its lock: other processes continue, and after the "
        + "suspension CMD runs again on the newer value. An update that still runs after ten "
        + "seconds can lose its lock too.",
    ],
    [
      Example("wormhole update visits --add 1", "increment a counter"),
      Example("wormhole update speed --add -0.5", "subtract a fraction"),
      Example("wormhole update name --exec 'tr a-z A-Z'", "change the text by a filter program"),
    ]
  ) { invocation in
    let (sum, line) = (invocation.value(.add), invocation.value(.exec))
    guard (sum == nil) != (line == nil) else {
      throw Failure.usage("cannot update: give either --add or --exec")
    }
    if let sum { return try invocation.add(sum) }
    return try invocation.update(by: line!)
  }
}

extension Invocation {
  fileprivate func add(_ text: String) throws -> Int32 {
    try require(.exec, for: [.type, .raw])
    guard let step = Number(text) else {
      throw Failure.usage("cannot use \(Option.add.usage): '\(text)' is not a number")
    }
    let name = operands[0]
    let channel = try open(create: true).channel(name, of: PropertyListValue.self)
    let (sum, version) = try channel.updateVersionIfNeeded(durability: durability) { value in
      value = try Number(value, of: name).plus(step, of: name)
      return .commit
    }
    guard let sum else { return 0 }
    if output.isJSON {
      try output.ofDone.write(change: sum, version, of: name)
    } else {
      try output.ofDone.write(try sum.printed())
    }
    return 0
  }

  fileprivate func update(by line: String) throws -> Int32 {
    try Interruption.prepare()
    let name = operands[0]
    let type = value(.type).flatMap(ValueType.init)
    var hasRun = false
    do {
      let container = try open(create: true)
      let within = EnclosingLock(.update, of: container)
      let channel = container.channel(name, of: PropertyListValue.self)
      let after = try channel.updateVersionIfNeeded(durability: durability) { value in
        let limit = Options().maximumValueBytes
        let (status, bytes) = try Programs.filter(
          line, input: try value?.printed(raw: has(.raw)) ?? [],
          ["WORMHOLE_CHANNEL=\(name)", within.setting],
          limit: limit)
        hasRun = true
        guard bytes.count <= limit else {
          throw WormholeError(
            .tooLarge, "update channel", name, because: "CMD wrote more than \(limit) bytes")
        }
        guard status == .exited(0) else { throw Refusal(status: status.code) }
        value = try ValueType.value(
          ofStream: bytes, type ?? ValueType(like: value), raw: has(.raw), for: name)
        return .commit
      }
      try output.ofDone.write(change: after.value, after.version, of: name)
    } catch let refusal as Refusal {
      output.explain("channel '\(name)' is not changed: the command ended with \(refusal.status)")
      return refusal.status
    } catch let error where !hasRun {
      throw Failure(neverRan: error)
    }
    return 0
  }
}

/// The command for the new value has failed, and nothing is changed.
private struct Refusal: Error {
  let status: Int32
}

extension ValueType {
  /// The type in which a value is passed to programs.
  fileprivate init(like value: PropertyListValue?) {
    switch value {
    case nil, .string: self = .string
    case .data: self = .data
    default: self = .json
    }
  }
}

extension Option {
  static let add = Option("add", .any("N"), "number to add; may be negative or have a fraction")
}
