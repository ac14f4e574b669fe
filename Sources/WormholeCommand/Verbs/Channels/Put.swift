import CommandLine
import PropertyLists
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let put = Verb(
    "put", "put a value into a channel",
    [Operand("CHANNEL", .one, .names(.channels)), Operand("VALUE", .optional)],
    [.type, .raw, .ifVersion, .power],
    [
      "Puts VALUE into the channel, in place of what is there. Without VALUE, or with '-', the "
        + "value is what comes on standard input: a string if it is UTF-8, and data otherwise. Of "
        + "a string one line feed at the end is taken off, which 'get' adds again; with --raw it "
        + "stays. A VALUE on the command line is a string unless --type says what it is.",
      "With --json, writes the channel, with the version and the value that it has then.",
    ],
    [
      Example("wormhole put greeting 'Hello, watch'", "a string"),
      Example("wormhole put speed 88 --type json", "a number"),
      Example("wormhole put photo - <photo.png", "whatever is in a file"),
      Example("wormhole put speed 89 --type json --if-version 3", "only if nobody was faster"),
    ]
  ) { invocation in
    let name = invocation.operands[0]
    let value = try invocation.givenValue(at: 1, for: name)
    let channel = try invocation.open(create: true).channel(name, of: PropertyListValue.self)
    let version = try channel.put(
      value, ifVersion: try invocation.number(.ifVersion), durability: invocation.durability)
    try invocation.output.ofDone.write(change: value, version, of: name)
    return 0
  }
}

extension Invocation {
  /// The value that stands at a place of the command line, or comes on standard input.
  func givenValue(at place: Int, for name: String) throws -> PropertyListValue {
    let type = value(.type).flatMap(ValueType.init)
    guard operands.count > place, operands[place] != "-" else {
      if StandardStream.input.isTerminal {
        output.tell(
          "reading the value from the terminal; Ctrl-D at the beginning of a line ends it")
      }
      let bytes = try StandardStream.input.readAll(limit: Wormhole.Options().largestValue)
      return try ValueType.value(ofStream: bytes, type, raw: has(.raw), for: name)
    }
    return try (type ?? .string).value(of: Array(operands[place].utf8), for: name)
  }
}

extension Option {
  static let type = Option(
    "type", .oneOf("TYPE", ValueType.allCases.map(\.rawValue)),
    "what the value is: string, json, plist or data")
  static let ifVersion = Option(
    "if-version", .any("N"), "only if this version is there; 0: if nothing was ever put")
  static let power = Option("power", nil, "return once it would survive a power cut")
}
