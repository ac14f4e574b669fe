public import FoundationEssentials
public import WormholeContainerStorage

/// Opening by a URL.
extension SharedContainer {
  /// Opens the container at a file URL; makes one there if need be, in an empty or a new directory.
  ///
  /// As the overload with a path.
  public convenience init(directory: URL, options: Options = Options()) throws(WormholeError) {
    try self.init(directory: directory.filePath("open"), options: options)
  }

  /// Opens the container at a file URL; makes one there if need be, in an empty or a new directory.
  ///
  /// As the overload without `await`, off the task's thread.
  public convenience init(
    directory: URL, options: Options = Options()
  ) async throws(WormholeError) {
    try await self.init(directory: directory.filePath("open"), options: options)
  }
}

extension URL {
  /// Returns the path of a file URL.
  func filePath(_ operation: String) throws(WormholeError) -> String {
    guard isFileURL else {
      throw WormholeError(
        .invalidName, operation, absoluteString, because: "the URL does not name a file",
        hint: "pass a URL with the scheme 'file'")
    }
    return path
  }
}
