import SharedContainer
import Syscalls
import Wormhole

/// A command line, understood: the verb, its options and its operands.
struct Invocation: Sendable {
  let verb: Verb
  let operands: [String]
  /// What came after `--`, where the verb takes a command.
  let command: [String]
  let output: Output
  private let options: [Given]

  /// An option that was given, and what came with it.
  struct Given: Sendable {
    let name: String
    let value: String
  }

  init(
    _ verb: Verb, _ operands: [String], _ command: [String], _ output: Output,
    _ options: [Given]
  ) {
    self.verb = verb
    self.operands = operands
    self.command = command
    self.output = output
    self.options = options
  }

  func has(_ option: Option) -> Bool { value(option) != nil }

  func value(_ option: Option) -> String? {
    options.first { $0.name == option.name }?.value
  }

  /// All that it was given with.
  func values(_ option: Option) -> [String] {
    options.filter { $0.name == option.name }.map(\.value)
  }

  func number(_ option: Option, least: Int = 0) throws(Failure) -> Int? {
    guard let text = value(option) else { return nil }
    guard let number = Int(text), number >= least else {
      throw .usage("cannot use \(option.usage): '\(text)' is no whole number of at least \(least)")
    }
    return number
  }

  func seconds(_ option: Option) throws(Failure) -> Duration? {
    guard let text = value(option) else { return nil }
    guard let seconds = Double(text), seconds >= 0, seconds <= 1e9 else {
      throw .usage("cannot use \(option.usage): '\(text)' is no number of seconds")
    }
    return .seconds(seconds)
  }

  /// Until when to wait.
  func deadline(_ option: Option) throws(Failure) -> Instant? {
    try seconds(option).map { Instant.now + $0 }
  }

  var durability: Durability? { has(.power) ? .power : nil }

  // MARK: The container

  /// Opens the container that the command line or the environment names.
  ///
  /// - Parameter create: whether one is made where none is.
  func open(
    create: Bool, _ adjust: (inout Wormhole.Options) -> Void = { _ in }
  ) throws -> Wormhole {
    var options = Wormhole.Options()
    options.mayCreate = create
    let output = output
    options.log = { level, message in
      if level >= .error { output.tell(message) } else { output.explain(message) }
    }
    adjust(&options)
    let hole =
      switch try place() {
      case .directory(let path): try Wormhole(directory: path, options: options)
      case .group(let name): try Wormhole(group: name, options: options)
      }
    // Kept for good: the end of the process closes it all, and faster.
    _ = Unmanaged.passRetained(hole)
    return hole
  }

  private enum Place {
    case directory(String)
    case group(String)
  }

  private func place() throws(Failure) -> Place {
    let (given, set) = (
      (value(.container), value(.group)),
      (Self.setting("WORMHOLE_CONTAINER"), Self.setting("WORMHOLE_GROUP"))
    )
    switch (given, set) {
    case ((_?, _?), _):
      throw .usage("cannot tell which container to use: both --container and --group are given")
    case ((let path?, nil), _): return .directory(path)
    case ((nil, let group?), _): return .group(group)
    case (_, (_?, _?)):
      throw .usage(
        "cannot tell which container to use: both WORMHOLE_CONTAINER and WORMHOLE_GROUP are set")
    case (_, (let path?, nil)): return .directory(path)
    case (_, (nil, let group?)): return .group(group)
    default:
      throw .usage(
        "cannot tell which container to use: give --container DIR or --group ID, "
          + "or set WORMHOLE_CONTAINER or WORMHOLE_GROUP")
    }
  }

  /// Set to nothing is not set.
  private static func setting(_ name: String) -> String? {
    Processes.environment(name).flatMap { $0.isEmpty ? nil : $0 }
  }
}
