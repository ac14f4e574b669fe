internal import PropertyLists
internal import Syscalls

extension Container {
  /// Notes that the machine has started since the container was last opened.
  ///
  /// Under a lock like any other value's, so that of all who find it out at once one raises it; and
  /// durable, since a stamp of this run of the machine must stay greater than all of the last.
  func raiseEpoch(boot: String) throws {
    let root: OpenDirectory
    do throws(Errno) {
      root = OpenDirectory(try self.root.duplicate())
    } catch {
      throw WormholeError(error, "open container", path)
    }
    let home = Slot.Home(directory: root, file: ContainerOpening.markerName)
    let slot = Slot(
      container: self, folder: .system, name: "set-up", try Self.escape("set-up"), home: home)
    try slot.change("raise the epoch in", durability: .power) { content in
      guard case .value(let bytes, _) = content else { return .none }
      var marker = try ContainerMarker(bytes, path: path)
      guard marker.boot != boot else { return .none }
      marker.epoch += 1
      marker.boot = boot
      return .put(try marker.encoded())
    }
  }
}
