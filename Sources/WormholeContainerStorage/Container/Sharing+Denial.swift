package import WormholeSyscalls

/// Why a user may not use a directory of a container, and the remedy.
extension Sharing {
  /// Returns the reason and the remedy for a group's directory whose mode is wrong; nil if the mode
  /// is right.
  ///
  /// A person has to check the directory and change the mode: any member may have moved the
  /// directory to this place, to have its owner open it to the group.
  ///
  /// - Parameters:
  ///   - path: as the user can name it.
  ///   - mode: 2770, or 2700 for a user's own folder in `staging/`.
  func complaint(
    about status: FileStatus, _ path: String, mode: FileMode = 0o2770
  ) -> (reason: String, hint: String)? {
    guard self == .group, status.kind == .directory, status.mode & 0o3777 != mode,
      mode != 0o2770 || !Self.isForMembers(status)
    else { return nil }
    let kind = mode == 0o2770 ? "a group's directory" : "a user's own folder"
    return (
      "'\(path)' belongs to user \(status.owner) and has the mode "
        + "\(String(status.mode, radix: 8)), not the mode of \(kind)",
      "check the content of the directory, because any member of the group may have moved "
        + "the directory to this path; "
        + "if the container made the directory: chmod \(String(mode, radix: 8)) '\(path)'"
    )
  }

  /// Returns why this user may not write to a directory of the container, and the remedy; nil if
  /// writing seems to be allowed.
  ///
  /// - Parameters:
  ///   - path: below the container's directory.
  ///   - place: the path of the container.
  func denial(
    of path: String, in root: borrowing Descriptor, at place: String
  ) -> String? {
    guard let status = try? root.status(of: path), status.kind == .directory else { return nil }
    guard status.mode & foreignWriters == 0 else {
      return "unauthorized users may write to '\(path)' (mode \(String(status.mode, radix: 8))): "
        + "check the content of the directory, and run 'chmod \(withoutForeignWriters)' on the "
        + "directory"
    }
    let (user, isOwn) = (Processes.effectiveUser, path == "staging/\(Staging.ownName)")
    if !isOwn || status.owner == user,
      let complaint = complaint(about: status, "\(place)/\(path)", mode: isOwn ? 0o2700 : 0o2770)
    {
      return "\(complaint.reason); \(complaint.hint)"
    }
    let permissions = status.mode >> (status.owner == user ? 6 : self == .group ? 3 : 0)
    guard permissions & 0o3 != 0o3 else { return nil }
    return "'\(path)' belongs to user \(status.owner) and has the mode "
      + "\(String(status.mode, radix: 8)), and user \(user) may not write to the directory: "
      + "run 'chown' or 'chmod' on the directory"
  }
}

extension Container {
  /// Returns the first denial among `staging/`, the directories of a path, and the named entries of
  /// the last directory; nil if all seem to be allowed.
  func firstDenial(on path: String, _ names: [String] = []) -> String? {
    let parts = path.parts(between: "/")
    let way = parts.indices.map { parts[...$0].joined(separator: "/") }
    let all =
      ["staging", "staging/\(Staging.ownName)"] + way
      + names.map { path.isEmpty ? $0 : "\(path)/\($0)" }
    return all.lazy.compactMap {
      self.options.sharing.denial(of: $0, in: self.root.descriptor, at: self.path)
    }.first
  }
}

extension WormholeError {
  /// The error of a call on a directory of a container, on a directory above it in the container,
  /// or on one of the named entries.
  package init(
    _ error: Errno, _ operation: String, _ subject: String, in container: Container,
    _ path: String, _ names: @autoclosure () -> [String] = []
  ) {
    self.init(error, operation, subject)
    guard code == .permissionDenied, let denial = container.firstDenial(on: path, names()) else {
      return
    }
    hint = denial
  }
}
