internal import WormholeSyscalls

extension WormholeError {
  /// The error of a call on the directory of a slot, or on the files of its lock.
  init(_ error: Errno, _ operation: String, _ slot: Slot) {
    self.init(
      error, operation, slot.name, in: slot.container, slot.locksPath, slot.namesOfStaging())
  }
}

extension Slot {
  /// The directories in `lock/` that commits use.
  func namesOfStaging() -> [String] {
    let locks = try? container.root.descriptor.open(locksPath, .readOnlyDirectory)
    return ((try? locks?.names()) ?? []).filter { $0.ends(with: ".d") }
  }
}
