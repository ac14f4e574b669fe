internal import Syscalls

/// The account's own state directory: for what decides what is run, and is nobody else's to say.
///
/// It is where the XDG base directories have it: `XDG_STATE_HOME`, or `.local/state` in the
/// account's home. Whoever may write to a directory may exchange what lies in it, so each on the
/// way is looked at. From the home, or from `XDG_STATE_HOME`, on down they belong to the effective
/// user, and nobody else may write to them; those above belong to the user or to whoever the root
/// directory belongs to, and may be written to by others only where nobody can take away what
/// another has made there, as in `/tmp`. Links are not followed.
struct AccountState {
  /// The names from the root to the first directory that is the account's own.
  private let above: [String]
  /// The names from there to the state directory.
  private let below: [String]

  init(variable: (String) -> String?, home: String?) throws(WormholeError) {
    let operation = "find the state directory of"
    let account = "this account"
    let hint = "set XDG_STATE_HOME to a directory of this account's"
    let base: String
    if let state = variable("XDG_STATE_HOME"), !state.isEmpty {
      (base, below) = (state, [])
    } else if let home = home ?? variable("HOME"), !home.isEmpty {
      (base, below) = (home, [".local", "state"])
    } else {
      throw WormholeError(
        .notFound, operation, account, because: "it has no home directory", hint: hint)
    }
    above = base.parts(between: "/").filter { $0 != "." }
    guard base.begins(with: "/"), !above.contains("..") else {
      throw WormholeError(
        .refused, operation, account, because: "'\(base)' is no absolute path", hint: hint)
    }
  }

  /// That of this process.
  init(_ environment: Environment) throws(WormholeError) {
    try self.init(
      variable: environment.variable,
      home: try ContainerLocation.home(of: Processes.effectiveUser))
  }

  /// Opens a directory in it.
  ///
  /// - Parameter making: whether directories that are missing are made.
  /// - Returns: nil if one is missing.
  func open(_ names: [String], making: Bool) throws(WormholeError) -> OpenDirectory? {
    var path = ""
    let all = above + below + names
    do {
      var directory = try Descriptor.open(path: "/", [.path, .directory])
      let trusted = try directory.status().owner
      for (place, name) in all.enumerated() {
        path += "/" + name
        directory = try Self.step(into: name, in: directory, making: making)
        let isOwn = place + 1 >= above.count
        if let reason = Self.objection(
          to: try directory.status(), isOwn: isOwn, trusting: trusted)
        {
          throw refusal(of: path, because: reason)
        }
      }
      return OpenDirectory(try directory.open(".", [.readOnly, .directory]))
    } catch let error as WormholeError {
      throw error
    } catch {
      switch error as! Errno {  // Only these two are thrown above.
      case .noSuchFile where !making: return nil
      case .notADirectory, .tooManyLinks:
        throw refusal(of: path, because: "it is a symbolic link, or no directory")
      case let error: throw WormholeError(error, "use directory", path)
      }
    }
  }

  private static func step(
    into name: String, in directory: borrowing Descriptor, making: Bool
  ) throws(Errno) -> Descriptor {
    do throws(Errno) {
      return try directory.open(name, [.path, .directory])
    } catch {
      guard error == .noSuchFile, making else { throw error }
    }
    do throws(Errno) {
      try directory.makeDirectory(name, mode: 0o700)
    } catch {
      guard error == .fileExists else { throw error }
    }
    return try directory.open(name, [.path, .directory])
  }

  /// Why somebody else may have decided what lies in a directory; nil if nobody can have.
  static func objection(to status: FileStatus, isOwn: Bool, trusting trusted: UInt32) -> String? {
    let user = Processes.effectiveUser
    if status.owner != user, isOwn || status.owner != trusted {
      return "it belongs to user \(status.owner), and this is user \(user)"
    }
    let isSticky = status.mode & 0o1000 != 0
    if status.mode & 0o022 != 0, isOwn || !isSticky {
      return "others may write to it (mode \(String(status.mode, radix: 8)))"
    }
    return nil
  }

  private func refusal(of path: String, because reason: String) -> WormholeError {
    WormholeError(
      .refused, "use directory", path, because: reason,
      hint: "what is started for this account is written there: see that it is this account's "
        + "alone, or set HOME or XDG_STATE_HOME to one that is")
  }
}
