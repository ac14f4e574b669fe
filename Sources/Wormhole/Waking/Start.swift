public import Dispatch
public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// How a member is started, by whoever needs it to run.
  public struct Start: Hashable, Sendable {
    /// The absolute path of the program.
    public let program: String
    /// What it is given, without its own name.
    public let arguments: [String]
    /// What is set in its environment beside, or in place of, what whoever starts it has there.
    public let environment: [String: String]
    /// The directory that it begins in; nil: the root.
    public let directory: String?

    init(_ start: MemberStart) {
      program = start.program
      arguments = start.arguments
      environment = start.environment
      directory = start.directory
    }
  }

  /// Says how a member is started when somebody wakes it, in place of what was said before.
  ///
  /// The member need not run, nor ever have joined. It is started for this user alone: others who
  /// wake it are refused, in a group's container too.
  ///
  /// - Parameters:
  ///   - name: the name that the program joins as.
  ///   - program: a path, or a name that PATH has here and now.
  ///   - arguments: what the program is given.
  ///   - environment: what is set beside what whoever starts it has; ``directory`` stands in
  ///     `WORMHOLE_CONTAINER` in any case.
  ///   - directory: an absolute path to begin in; by default the root.
  public func registerStart(
    of name: String, program: String, arguments: [String] = [],
    environment: [String: String] = [:], directory: String? = nil
  ) throws(WormholeError) {
    _ = try WakeRecord.slot(of: name, in: container)
    let path: String
    do throws(Errno) {
      path = try Processes.path(ofProgram: program)
    } catch {
      throw WormholeError(
        error == .noSuchFile ? .notFound : .refused, "register the start of", name,
        because: "there is no program '\(program)' that can be run: \(error)", errno: error)
    }
    let start = MemberStart(
      program: path, arguments: arguments, environment: environment, directory: directory)
    try Self.check(start, name)
    try container.member(name).write(start)
    tellStartsChanged()
  }

  /// Calls a closure whenever how some member is started may have changed, through any process.
  ///
  /// What it is now is to be read: see ``start(of:)``.
  ///
  /// - Parameters:
  ///   - queue: where the closure is called; by default on a thread of the library's own.
  ///   - handler: is called once for several changes if it is not fast enough for each.
  @discardableResult
  public func watchStarts(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable () -> Void
  ) throws(WormholeError) -> Subscription {
    try notice(Self.startsNotice).watch(on: queue, handler)
  }

  private static let startsNotice = "wormhole/starts"

  private func tellStartsChanged() {
    do throws(WormholeError) {
      try notice(Self.startsNotice).post()
    } catch {
      // It is registered all the same.
      log(.notice, "\(error)")
    }
  }

  /// Says how a member is started when somebody wakes it, in place of what was said before.
  ///
  /// As the one without `await`, off the task's thread.
  public func registerStart(
    of name: String, program: String, arguments: [String] = [],
    environment: [String: String] = [:], directory: String? = nil
  ) async throws(WormholeError) {
    try await OffPool.run("register the start of", name) { () throws(WormholeError) in
      try self.registerStart(
        of: name, program: program, arguments: arguments, environment: environment,
        directory: directory)
    }
  }

  private static func check(_ start: MemberStart, _ name: String) throws(WormholeError) {
    func unusable(_ reason: String) -> WormholeError {
      WormholeError(.invalidValue, "register the start of", name, because: reason)
    }
    if let directory = start.directory, !directory.begins(with: "/") {
      throw unusable("'\(directory)' is no absolute path to begin in")
    }
    if let odd = start.environment.keys.first(where: {
      $0.isEmpty || $0.utf8.contains(UInt8(ascii: "="))
    }) {
      throw unusable("'\(odd)' cannot name a variable")
    }
    guard start.words.allSatisfy(MemberStart.canBePassed) else {
      throw unusable("a program cannot be given a zero")
    }
  }

  /// How a member is started; nil if nobody has said so.
  ///
  /// It is an error, ``WormholeError/Code-swift.struct/refused``, if somebody else can have written
  /// it.
  public func start(of name: String) throws(WormholeError) -> Start? {
    guard let home = try container.existingMember(name) else { return nil }
    return try home.readStart("read the start of").map(Start.init)
  }

  /// Forgets how a member is started; false if nobody had said so.
  @discardableResult
  public func removeStart(of name: String) throws(WormholeError) -> Bool {
    guard let home = try container.existingMember(name), try home.removeStart() else {
      return false
    }
    tellStartsChanged()
    return true
  }
}

extension Wormhole.Member {
  /// Says how this member is started when somebody wakes it.
  ///
  /// As `Wormhole.registerStart(of:program:arguments:environment:directory:)`.
  public func registerStart(
    program: String, arguments: [String] = [], environment: [String: String] = [:],
    directory: String? = nil
  ) throws(WormholeError) {
    try hole.registerStart(
      of: name, program: program, arguments: arguments, environment: environment,
      directory: directory)
  }
  /// Says how this member is started when somebody wakes it.
  ///
  /// As the one without `await`, off the task's thread.
  public func registerStart(
    program: String, arguments: [String] = [], environment: [String: String] = [:],
    directory: String? = nil
  ) async throws(WormholeError) {
    try await hole.registerStart(
      of: name, program: program, arguments: arguments, environment: environment,
      directory: directory)
  }
}
