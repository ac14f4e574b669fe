public import FoundationEssentials
public import WormholeContainerStorage

/// Sending files by their URLs; each call is as the overload with a path.
extension Peer {
  /// Sends a file with a descriptive value.
  @discardableResult
  public func send<Metadata: Encodable>(
    file: URL, metadata: Metadata, mode: TransferMode = .copying,
    _ options: SendOptions = SendOptions(),
    progress: ((FileProgress) -> ProgressDecision)? = nil
  ) throws(WormholeError) -> Sent {
    try send(
      file: file.filePath("send file"), metadata: metadata, mode: mode, options,
      progress: progress)
  }

  /// Sends a file without a value, as a message of the kind `file`.
  @discardableResult
  public func send(
    file: URL, mode: TransferMode = .copying, _ options: SendOptions = SendOptions(),
    progress: ((FileProgress) -> ProgressDecision)? = nil
  ) throws(WormholeError) -> Sent {
    try send(file: file.filePath("send file"), mode: mode, options, progress: progress)
  }

  /// Sends a file with a descriptive value.
  ///
  /// The async overload; runs off the task's thread, including the progress closure.
  @discardableResult
  public func send<Metadata: Encodable & Sendable>(
    file: URL, metadata: Metadata, mode: TransferMode = .copying,
    _ options: SendOptions = SendOptions(),
    progress: (@Sendable (FileProgress) -> ProgressDecision)? = nil
  ) async throws(WormholeError) -> Sent {
    try await send(
      file: file.filePath("send file"), metadata: metadata, mode: mode, options,
      progress: progress)
  }

  /// Sends a file without a value, as a message of the kind `file`.
  ///
  /// The async overload; runs off the task's thread, including the progress closure.
  @discardableResult
  public func send(
    file: URL, mode: TransferMode = .copying, _ options: SendOptions = SendOptions(),
    progress: (@Sendable (FileProgress) -> ProgressDecision)? = nil
  ) async throws(WormholeError) -> Sent {
    try await send(file: file.filePath("send file"), mode: mode, options, progress: progress)
  }
}
