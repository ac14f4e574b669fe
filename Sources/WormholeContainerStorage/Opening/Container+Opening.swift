internal import WormholeSyscalls

extension Container {
  /// Opens the container at a path; makes a container if there is none and the options permit it.
  ///
  /// - Parameter create: if false, a directory that is not a container is an error, and no file is
  ///   made.
  package static func open(
    _ path: String, create: Bool = true, options: ContainerOptions = ContainerOptions()
  ) throws(WormholeError) -> Container {
    let opener = ContainerOpener(
      path: UserPath.withoutSlashes(path), options: options, createsIfMissing: create)
    let root = OpenDirectory(try opener.openRoot())
    let marker = try opener.findMarker(root.descriptor)
    let identity: FileIdentity
    let staging: Staging
    do throws(Errno) {
      identity = FileIdentity(try root.descriptor.status())
      staging = Staging(
        try opener.ensureStaging(in: root.descriptor), options.sharing, options.environment)
    } catch {
      throw opener.error(error, in: root.descriptor)
    }
    let container = Container(
      path: path, options: options, root: root, identity: identity, staging: staging,
      marker: marker)
    // Not a weak reference to the container: it would make each later retain of the container
    // slower, and every operation has several.
    staging.setMakeAnew { () throws(Errno) in try opener.ensureStaging(in: root.descriptor) }
    if !options.isForReading {
      container.sweep()
      container.sweepGuestsIfPossible()
    }
    return container
  }

  /// Returns the sharing that the container at a path records; nil if it cannot be read or is not
  /// recorded.
  static func recordedSharing(at path: String) -> Sharing? {
    ContainerOpener(path: path, options: ContainerOptions(), createsIfMissing: false)
      .recordedSharing()
  }

  /// Optional: a container that is only readable is opened all the same.
  private func sweep() {
    do throws(Errno) {
      let swept = try staging.sweep()
      guard swept > 0 else { return }
      count { $0.swept += swept }
      log(.info, "swept \(swept) unfinished files of ended processes")
    } catch {
      log(.notice, "could not sweep \(path)/staging: \(error)", because: error)
    }
  }
}
