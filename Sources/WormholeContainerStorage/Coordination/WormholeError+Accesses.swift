internal import WormholeSyscalls

extension WormholeError {
  /// The error of a call on the directories of accesses to files.
  init(_ error: Errno, _ operation: String, _ subject: String, accessesIn container: Container) {
    self.init(
      error, operation, subject, in: container, "system/\(AccessDirectory.slotName)",
      AccessDirectory.folders)
  }
}

extension AccessDirectory {
  /// The directories of the accesses' slot, beside those that every slot has.
  static let folders =
    AccessPlace.allCases.map(\.name) + [passedName, processesName, presentersName]
}
