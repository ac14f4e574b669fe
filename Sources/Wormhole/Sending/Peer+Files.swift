public import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Sending files.
extension Peer {
  /// Sends a file with a descriptive value.
  ///
  /// The message is guaranteed, with all rules of `send(_:_:)`: its ``Message/file`` is
  /// the file, and its value is the metadata. Once the call returns, the sent file has the content
  /// from the beginning of the call, independent of later changes. Data appended in the meantime is
  /// not sent, and if the file is truncated in the meantime, the call throws.
  ///
  /// The call blocks its thread while it copies, unless the file system shares blocks between
  /// copies, or the file is moved. Memory use is constant. Only regular files are sent. The path
  /// may lead to a file through symbolic links, except for a move. If the call throws, nothing was
  /// sent, with two exceptions: ``WormholeError/Code-swift.struct/notDurable``, and
  /// ``WormholeError/Code-swift.struct/partlyDone`` if a moved file could not be removed.
  ///
  /// - Parameters:
  ///   - path: the file; relative paths start at the working directory.
  ///   - metadata: any value, received as the value of the message.
  ///   - mode: whether the file stays at its path.
  ///   - options: the send options. Without a kind, the message has the kind of the metadata's
  ///     type.
  ///   - progress: called at intervals, on this thread; returns whether to continue.
  @discardableResult
  public func send<Metadata: Encodable>(
    file path: String, metadata: Metadata, mode: TransferMode = .copying,
    _ options: SendOptions = SendOptions(),
    progress: ((FileProgress) -> ProgressDecision)? = nil
  ) throws(WormholeError) -> Sent {
    let sending = try SendOperation(self, options, MessageKind.name(of: Metadata.self))
    return try sending.send(file: path, mode, progress, metadata)
  }

  /// Sends a file without a value, as a message of the kind `file`.
  ///
  /// As `send(file:metadata:by:_:progress:)`.
  @discardableResult
  public func send(
    file path: String, mode: TransferMode = .copying,
    _ options: SendOptions = SendOptions(),
    progress: ((FileProgress) -> ProgressDecision)? = nil
  ) throws(WormholeError) -> Sent {
    let sending = try SendOperation(self, options, "file")
    return try sending.send(file: path, mode, progress, String?.none)
  }
}

extension SendOperation {
  private var fileOperation: String { "send file" }

  /// Sends the file in this order.
  ///
  /// Before the message's stamp is taken, the file is complete and, if requested, synced. Before
  /// the message is in the peer's inbox, the file is in the peer's `files/`. Until then the file is
  /// locked.
  fileprivate func send<Metadata: Encodable>(
    file path: String, _ mode: TransferMode,
    _ progress: ((FileProgress) -> ProgressDecision)?, _ metadata: Metadata?
  ) throws(WormholeError) -> Sent {
    try checkUndelayed()
    let source = try UserPath(path).open(fileOperation)
    if mode == .moving, source.path.isLink {
      throw WormholeError(
        .refused, fileOperation, path, because: "the path is a symbolic link",
        hint: "pass the path of the link's target")
    }
    let attachment = try stage(source, isMoving: mode == .moving, progress)
    let name = source.path.name
    let attached = MessageFile.FileHeader(
      name: name, size: attachment.size, checksum: attachment.checksum,
      synced: options.durability == .power)
    var failure: WormholeError?
    var sent: Sent?
    var isLost = false
    do throws(WormholeError) {
      let file = SentFile(name: name, size: attachment.size)
      sent = try send(file: file) { (message, home) throws(Errno) in
        do throws(Errno) {
          try attachment.move(to: home, as: message.fileName)
        } catch {
          // With the error of a missing inbox, the message would be placed again and again. In a
          // removed container, everything is gone.
          isLost = error == .noSuchFile && attachment.isLost && container.storage.isInPlace
          throw isLost ? .stale : error
        }
      } _: { (header) throws(WormholeError) in
        var header = header
        header.file = attached
        return try encode { [header] in try $0.seal(header, optional: metadata) }
      }
    } catch {
      guard error.code == .notDurable else {
        throw isLost ? removedCopy(of: source.path) : error
      }
      failure = error
    }
    attachment.keep()
    if let failure { throw failure }
    if mode == .moving { try remove(source) }
    return sent!  // There is no failure.
  }

  private func removedCopy(of path: UserPath) -> WormholeError {
    WormholeError(
      .conflict, fileOperation, path.path,
      because: "another program has removed the file's copy from the container",
      hint: "find the program that removes files of the container")
  }

  private func stage(
    _ source: borrowing UserFile, isMoving: Bool,
    _ progress: ((FileProgress) -> ProgressDecision)?
  ) throws(WormholeError) -> Attachment {
    let (path, size) = (source.path, source.status.size)
    do throws(CopyFailure) {
      return try Attachment.stage(
        source, in: container.storage, moving: isMoving, durability: options.durability
      ) { done in
        let now = FileProgress(name: path.name, done: done, total: max(size, done))
        return progress?(now) != .cancel
      }
    } catch {
      throw switch error {
      case .system(let error): WormholeError(error, fileOperation, path.path)
      case .cancelled:
        WormholeError(.cancelled, fileOperation, path.path, because: "the copy was cancelled")
      case .shrank(let now):
        WormholeError(
          .conflict, fileOperation, path.path,
          because: "the file was truncated from \(size) to \(now) bytes while this process read it",
          hint: "send the file when no program writes to it")
      }
    }
  }

  private func remove(_ source: borrowing UserFile) throws(WormholeError) {
    let path = source.path
    do throws(Errno) {
      try source.remove()
    } catch {
      if error == .noSuchFile { return }
      let why = error == .busy ? "another file has the path now" : error.description
      throw WormholeError(
        .partlyDone, fileOperation, path.path,
        because: "the file was sent, but could not be removed: \(why)",
        hint: "remove the file", errno: error)
    }
  }
}
