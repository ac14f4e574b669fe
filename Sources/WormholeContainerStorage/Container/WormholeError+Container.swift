package import WormholeSyscalls

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
