public import Dispatch
public import WormholeContainerStorage
internal import WormholeSyscalls

/// The program that starts a member, and its arguments, environment and directory.
public struct LaunchCommand: Hashable, Sendable {
  /// The absolute path of the program.
  public let program: String
  /// The arguments of the program, without its own name.
  public let arguments: [String]
  /// Variables of the program's environment, in addition to the variables of the starting
  /// process, or in their place.
  public let environment: [String: String]
  /// The directory in which the program starts; nil: the root.
  public let directory: String?

  init(_ start: MemberStart) {
    program = start.program
    arguments = start.arguments
    environment = start.environment
    directory = start.directory
  }
}

extension SharedContainer {
  /// Registers the program that starts a member when a process wakes the member, in place of an
  /// earlier registration.
  ///
  /// The member need not run, nor ever have joined. The registration is for this user alone: a wake
  /// by another user is refused, in a group's container too.
  ///
  /// - Parameters:
  ///   - name: the name under which the program joins.
  ///   - program: a path, or a name in the present PATH of the calling process.
  ///   - arguments: the arguments of the program.
  ///   - environment: variables in addition to those of the starting process; `WORMHOLE_CONTAINER`
  ///     contains ``directory`` in any case.
  ///   - directory: an absolute path in which the program starts; by default the root.
  public func registerLaunch(
    of name: String, program: String, arguments: [String] = [],
    environment: [String: String] = [:], directory: String? = nil
  ) throws(WormholeError) {
    _ = try WakeRecord.slot(of: name, in: storage)
    let path: String
    do throws(Errno) {
      path = try Processes.path(ofProgram: program)
    } catch {
      throw WormholeError(
        error == .noSuchFile ? .notFound : .refused, "register the launch command of", name,
        because: error == .noSuchFile
          ? "program '\(program)' was not found"
          : "program '\(program)' is not executable: \(error)",
        errno: error)
    }
    let start = MemberStart(
      program: path, arguments: arguments, environment: environment, directory: directory)
    try Self.check(start, name)
    // After a failed sync, the new registration is in its place too.
    defer { tellStartsChanged() }
    try storage.member(name).write(start)
  }

  /// Calls a closure whenever the registration of a member may have changed, through any process.
  ///
  /// The closure has to read the present registration: see ``launchCommand(of:)``.
  ///
  /// - Parameters:
  ///   - queue: the queue for the closure; by default a thread of the library.
  ///   - handler: is called once for several changes if it is too slow for each.
  @discardableResult
  public func watchLaunches(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable () -> Void
  ) throws(WormholeError) -> Subscription {
    try notice(Self.startsNotice).watch(on: queue, handler)
  }

  private static let startsNotice = "wormhole/starts"

  private func tellStartsChanged() {
    do throws(WormholeError) {
      try notice(Self.startsNotice).post()
    } catch {
      // The registration itself has succeeded.
      log(.notice, "\(error)")
    }
  }

  /// Registers the program that starts a member when a process wakes the member, in place of an
  /// earlier registration.
  ///
  /// As the overload without `await`, off the task's thread.
  public func registerLaunch(
    of name: String, program: String, arguments: [String] = [],
    environment: [String: String] = [:], directory: String? = nil
  ) async throws(WormholeError) {
    try await OffPool.run("register the launch command of", name) { () throws(WormholeError) in
      try self.registerLaunch(
        of: name, program: program, arguments: arguments, environment: environment,
        directory: directory)
    }
  }

  private static func check(_ start: MemberStart, _ name: String) throws(WormholeError) {
    func unusable(_ reason: String) -> WormholeError {
      WormholeError(.invalidValue, "register the launch command of", name, because: reason)
    }
    if let directory = start.directory, !directory.begins(with: "/") {
      throw unusable("the working directory '\(directory)' is not an absolute path")
    }
    if let odd = start.environment.keys.first(where: {
      $0.isEmpty || $0.utf8.contains(UInt8(ascii: "="))
    }) {
      throw unusable("'\(odd)' is not a name of an environment variable")
    }
    guard start.words.allSatisfy(MemberStart.canBePassed) else {
      throw unusable("the program, an argument or the environment contains a zero byte")
    }
  }

  /// Returns the registration of a member; nil if there is none.
  ///
  /// It throws ``WormholeError/Code-swift.struct/refused`` if another user can have written the
  /// registration.
  public func launchCommand(of name: String) throws(WormholeError) -> LaunchCommand? {
    guard let home = try storage.existingMember(name) else { return nil }
    return try home.readStart("read the launch command of").map(LaunchCommand.init)
  }

  /// Removes the registration of a member; false if there was none.
  @discardableResult
  public func removeLaunch(of name: String) throws(WormholeError) -> Bool {
    guard let home = try storage.existingMember(name) else { return false }
    var isRemoved = true
    // After a failed sync, the registration is gone too.
    defer { if isRemoved { tellStartsChanged() } }
    isRemoved = try home.removeLaunch()
    return isRemoved
  }
}

extension Member {
  /// Registers the program that starts this member when a process wakes the member.
  ///
  /// As `SharedContainer.registerLaunch(of:program:arguments:environment:directory:)`.
  public func registerLaunch(
    program: String, arguments: [String] = [], environment: [String: String] = [:],
    directory: String? = nil
  ) throws(WormholeError) {
    try container.registerLaunch(
      of: name, program: program, arguments: arguments, environment: environment,
      directory: directory)
  }
  /// Registers the program that starts this member when a process wakes the member.
  ///
  /// As the overload without `await`, off the task's thread.
  public func registerLaunch(
    program: String, arguments: [String] = [], environment: [String: String] = [:],
    directory: String? = nil
  ) async throws(WormholeError) {
    try await container.registerLaunch(
      of: name, program: program, arguments: arguments, environment: environment,
      directory: directory)
  }
}
