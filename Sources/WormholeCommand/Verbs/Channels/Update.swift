import CommandLine
import PropertyLists
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let update = Verb(
    "update", "change the value of a channel, with no other change in between",
    [Operand("CHANNEL", .one, .names(.channels))], [.add, .exec, .type, .raw, .power],
    [
      "With --add, adds N to the number that is there, or to 0, and prints the sum. With --json, "
        + "writes the channel, with the version and the value that it has then.",
      "With --exec, runs CMD in a shell while nobody else can change the channel. CMD reads the "
        + "old value on standard input, as 'get' prints it, and nothing if there is none; what it "
        + "writes is the new value, of the type that the old one had, or that --type says; of a "
        + "string one line feed at the end is taken off, and with --raw nothing is added or taken "
        + "off. If CMD fails, nothing is changed and its "
        + "status is passed on. It gets the channel's name in WORMHOLE_CHANNEL.",
      "CMD cannot change the same container: that would wait for this update to end, and is "
        + "refused "
        + "at once.",
      "Whoever stands still meanwhile, as a stopped process does, loses the turn: the others go "
        + "on, and CMD runs again on the newer value. It has ten seconds.",
    ],
    [
      Example("wormhole update visits --add 1", "count"),
      Example("wormhole update speed --add -0.5", "a fraction, and downward"),
      Example("wormhole update name --exec 'tr a-z A-Z'", "any program that reads and writes"),
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
    for option in [Option.type, .raw] where has(option) {
      throw Failure.usage("cannot update: --\(option.name) goes with --exec")
    }
    guard let step = Number(text) else {
      throw Failure.usage("cannot use \(Option.add.usage): '\(text)' is no number")
    }
    let name = operands[0]
    let channel = try open(create: true).channel(name, of: PropertyListValue.self)
    let (sum, version) = try channel.decideVersion(durability: durability) { value in
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
      let hole = try open(create: true)
      let within = Enclosure(.update, of: hole)
      let channel = hole.channel(name, of: PropertyListValue.self)
      let after = try channel.decideVersion(durability: durability) { value in
        let limit = Wormhole.Options().largestValue
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

/// The program that was to make the new value has failed, and nothing is to be changed.
private struct Refusal: Error {
  let status: Int32
}

extension ValueType {
  /// The type that a value is handed to programs in.
  fileprivate init(like value: PropertyListValue?) {
    switch value {
    case nil, .string: self = .string
    case .data: self = .data
    default: self = .json
    }
  }
}

/// What can be added to.
private enum Number {
  case whole(Int64)
  /// More than fits in the other.
  case large(UInt64)
  case real(Double)

  init?(_ text: String) {
    if let whole = Int64(text) {
      self = .whole(whole)
    } else if let large = UInt64(text) {
      self = .large(large)
    } else if let real = Double(text), real.isFinite {
      self = .real(real)
    } else {
      return nil
    }
  }

  init(_ value: PropertyListValue?, of name: String) throws(WormholeError) {
    switch value {
    case nil: self = .whole(0)
    case .integer(let whole): self = .whole(whole)
    case .unsigned(let large): self = .large(large)
    case .real(let real): self = .real(real)
    default:
      throw WormholeError(
        .typeMismatch, "add to channel", name, because: "its value is no number",
        hint: "put numbers with '--type json'")
    }
  }

  func plus(_ step: Number, of name: String) throws(WormholeError) -> PropertyListValue {
    guard let number = whole, let step = step.whole else { return .real(real + step.real) }
    let sum = number + step
    if let sum = Int64(exactly: sum) { return .integer(sum) }
    if let sum = UInt64(exactly: sum) { return .unsigned(sum) }
    throw WormholeError(
      .invalidValue, "add to channel", name, because: "the sum does not fit into 64 bits")
  }

  private var whole: Int128? {
    switch self {
    case .whole(let number): Int128(number)
    case .large(let number): Int128(number)
    case .real: nil
    }
  }

  private var real: Double {
    switch self {
    case .whole(let number): Double(number)
    case .large(let number): Double(number)
    case .real(let number): number
    }
  }
}

extension Option {
  static let add = Option("add", .any("N"), "add N, which may be negative or have a fraction")
  static let exec = Option("exec", .any("CMD"), "run CMD in a shell, with the value as its input")
}
