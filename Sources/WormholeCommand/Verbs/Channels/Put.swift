import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let put = Verb(
    "put", "set a channel's value",
    [Operand("CHANNEL", .one, .names(.channels)), Operand("VALUE", .optional)],
    [.type, .number, .raw, .ifVersion, .valueTtl, .power],
    [
      "Sets the channel to VALUE and replaces the previous value. Without VALUE, or with '-', "
        + "reads the value from standard input: UTF-8 becomes a string, and other bytes become "
        + "data. A newline at the end of a string is removed, which 'get' adds again; with "
        + "--raw, the newline stays. A VALUE on the command line is a string unless --type or "
        + "--number is given.",
      "With --ttl, the value expires after D, by the wall clock: then readers find no value, and "
        + "watchers are notified as of a clear. 'update' does not change the moment, and the next "
        + "'put' does. Programs made before --ttl existed still find the value.",
      "With --json, writes the channel with its new version and value.",
    ],
    [
      Example("wormhole put greeting 'Hello, watch'", "set a string"),
      Example("wormhole put speed 88 --number", "set a number"),
      Example("wormhole put photo - <photo.png", "the content of a file"),
      Example("wormhole put online yes --ttl 30s", "a value for half a minute"),
      Example(
        "wormhole put speed 89 --number --if-version 3",
        "only if version 3 is still the current one"),
    ]
  ) { invocation in
    let name = invocation.operands[0]
    let expected = try invocation.number(.ifVersion)
    let time = try invocation.seconds(.valueTtl, " above 0") { $0 > .zero }
    let value = try invocation.givenValueOrNumber(at: 1, for: name)
    let channel = try invocation.open(create: true).channel(name, of: PropertyListValue.self)
    let durability = invocation.durability
    let version =
      if let time {
        try channel.put(value, timeToLive: time, ifVersion: expected, durability: durability)
      } else {
        try channel.put(value, ifVersion: expected, durability: durability)
      }
    try invocation.output.ofDone.write(change: value, version, of: name)
    return 0
  }
}

extension Invocation {
  /// Returns the value as ``givenValue(at:for:)``, or, with `--number`, the number that it states.
  fileprivate func givenValueOrNumber(
    at place: Int, for name: String
  ) throws -> PropertyListValue {
    try exclude(.number, [.type])
    let value = try givenValue(at: place, for: name)
    guard has(.number) else { return value }
    guard case .string(let text) = value, let number = Number(text) else {
      throw Failure(
        WormholeError(
          .invalidValue, "use the value for", name, because: "it is not a number"))
    }
    return number.value
  }

  /// Returns the value from an operand, or from standard input.
  func givenValue(at place: Int, for name: String) throws -> PropertyListValue {
    let type = value(.type).flatMap(ValueType.init)
    guard operands.count > place, operands[place] != "-" else {
      if StandardStream.input.isTerminal {
        output.tell(
          "reading the value from the terminal; Ctrl-D at the beginning of a line ends it")
      }
      let bytes = try StandardStream.input.readAll(limit: Options().maximumValueBytes)
      return try ValueType.value(ofStream: bytes, type, raw: has(.raw), for: name)
    }
    return try (type ?? .string).value(of: Array(operands[place].utf8), for: name)
  }
}

extension Option {
  static let number = Option("number", nil, "the value is a number, whole or with a fraction")
  static let ifVersion = Option(
    "if-version", .any("N"), "version that the channel must have; 0: no value was ever set")
  static let valueTtl = Option(
    "ttl", .any("D"), "time to live, after which the channel has no value")
}
