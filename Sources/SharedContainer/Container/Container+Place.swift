internal import Syscalls

extension Container {
  /// Whether its path still leads to it.
  package var isInPlace: Bool {
    (try? Descriptor.status(ofPath: path, following: false)).map(FileIdentity.init) == identity
  }
}
