public import FoundationEssentials
public import WormholeContainerStorage

/// The received file by its URL; each call is as the overload with a path.
extension ReceivedFile {
  /// The location of the file until the message is acknowledged, as ``path``.
  public var url: URL { URL(filePath: path, directoryHint: .notDirectory) }

  /// Moves the file out of the container; call it before the message is acknowledged.
  public func move(
    to url: URL, replacing isReplacing: Bool = false,
    progress: ((FileProgress) -> ProgressDecision)? = nil
  ) throws(WormholeError) {
    try move(to: url.filePath("move file to"), replacing: isReplacing, progress: progress)
  }

  /// Moves the file out of the container; call it before the message is acknowledged.
  ///
  /// The async overload; runs off the task's thread, including the progress closure.
  public func move(
    to url: URL, replacing isReplacing: Bool = false,
    progress: (@Sendable (FileProgress) -> ProgressDecision)? = nil
  ) async throws(WormholeError) {
    try await move(to: url.filePath("move file to"), replacing: isReplacing, progress: progress)
  }
}
