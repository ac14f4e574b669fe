import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

extension Invocation {
  var durability: Durability? { has(.power) ? .power : nil }

  // MARK: The container

  /// Opens the container that the command line or the environment names.
  ///
  /// - Parameter create: whether a missing container is made.
  func open(
    create: Bool, _ adjust: (inout Options) -> Void = { _ in }
  ) throws -> SharedContainer {
    var options = Options()
    options.createsIfMissing = create
    if has(.groupShared) { options.sharing = .group }
    let output = output
    options.log = { entry in
      if entry.level >= .error { output.warn(entry.text) } else { output.explain(entry.text) }
    }
    adjust(&options)
    let container: SharedContainer
    let place = try location()
    do {
      // A command that waits alone in a container waits for ever: perhaps the path is a mistake.
      options.createsIfMissing = create && !waits
      container = try open(place, options)
    } catch let error as WormholeError
      where create && waits && [.notFound, .notAContainer].contains(error.code)
    {
      options.createsIfMissing = true
      container = try open(place, options)
      output.tell("there was no container at '\(container.storage.path)'; created it")
    }
    if verb.changesValues { try EnclosingLock.refuseChange(of: container, verb.name) }
    // Never released: the end of the process closes everything, and faster.
    _ = Unmanaged.passRetained(container)
    return container
  }

  private func open(_ place: Place, _ options: Options) throws -> SharedContainer {
    do throws(WormholeError) {
      switch place {
      case .directory(let path): return try SharedContainer(directory: path, options: options)
      case .group(let name): return try SharedContainer(group: name, options: options)
      }
    } catch {
      guard options.createsIfMissing, error.code == .notFound else { throw error }
      // Not a *no*: the command cannot do what it was asked for.
      var failure = Failure(error)
      failure.status = ExitCode.configuration.rawValue
      throw failure
    }
  }

  private enum Place {
    case directory(String)
    case group(String)
  }

  private func location() throws(Failure) -> Place {
    let given = (value(.container), value(.group))
    let set = (try Self.setting("WORMHOLE_CONTAINER"), try Self.setting("WORMHOLE_GROUP"))
    switch (given, set) {
    case ((_?, _?), _):
      throw .usage("cannot choose a container: both --container and --group are given")
    case ((let path?, nil), _): return .directory(path)
    case ((nil, let group?), _): return .group(group)
    case (_, (_?, _?)):
      throw .usage(
        "cannot choose a container: both WORMHOLE_CONTAINER and WORMHOLE_GROUP are set")
    case (_, (let path?, nil)): return .directory(path)
    case (_, (nil, let group?)): return .group(group)
    default:
      throw .usage(
        "cannot choose a container: none is given; use --container DIR or --group ID, "
          + "or set WORMHOLE_CONTAINER or WORMHOLE_GROUP")
    }
  }

  /// An empty variable counts as not set.
  private static func setting(_ name: String) throws(Failure) -> String? {
    guard !Processes.isGarbled(environment: name) else {
      throw .usage("cannot choose a container: \(name) is not UTF-8; use a path in UTF-8")
    }
    return Processes.environment(name).flatMap { $0.isEmpty ? nil : $0 }
  }
}

extension Invocation {
  /// Whether the verb waits for changes by other processes in the container.
  fileprivate var waits: Bool {
    switch verb.name {
    case "watch", "observe": true
    case "get": has(.wait)
    case "defaults": operands.first == DefaultsAction.watch.rawValue
    default: false
    }
  }
}

extension Verb {
  /// Whether the verb requests locks of the container's values.
  fileprivate var changesValues: Bool {
    ["put", "clear", "update", "lock", "remove"].contains(name)
  }
}
