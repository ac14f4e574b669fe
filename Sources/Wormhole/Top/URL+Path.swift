internal import FoundationEssentials
internal import WormholeContainerStorage

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
