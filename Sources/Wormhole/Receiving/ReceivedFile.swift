public import WormholeContainerStorage
internal import WormholeSyscalls

/// A file that was received with a message.
///
/// The file was compared with the sender's size and checksum before the message was delivered. It
/// is removed when the message is acknowledged, unless the receiver has taken it before.
///
/// A message of a ``Queue`` may become another worker's at any time, so its file stays until the
/// message is acknowledged: a handler takes a copy.
public struct ReceivedFile: Sendable {
  /// Nil for a file that a test has made.
  private let claim: FileClaim?
  private let contents: Contents?
  private let home: MemberDirectory
  private let fileName: String
  private let attached: MessageFile.FileHeader
  private let made: MadeMessage?

  init(_ delivery: MemberDelivery, _ contents: Contents, _ attached: MessageFile.FileHeader) {
    claim = .member(delivery)
    self.contents = contents
    home = delivery.mailbox.home
    fileName = delivery.name.fileName
    self.attached = attached
    made = nil
  }

  init(_ shared: any SharedClaim, _ contents: Contents, _ attached: MessageFile.FileHeader) {
    claim = .worker(shared)
    self.contents = contents
    home = shared.home
    fileName = shared.fileName
    self.attached = attached
    made = nil
  }

  /// The claim of the message that the file belongs to.
  private enum FileClaim {
    case member(MemberDelivery)
    case worker(any SharedClaim)

    /// Whether no other receiver has the message.
    var isHeld: Bool {
      get throws(Errno) {
        switch self {
        case .member(let delivery):
          try delivery.mailbox.home.status(of: delivery.claimed.text, in: .claimed) != nil
        case .worker(let shared): try shared.isHeld
        }
      }
    }
  }

  /// Creates the file of a message that a test has made.
  init(_ file: MadeFile, of made: MadeMessage) {
    claim = nil
    contents = nil
    (home, fileName, attached) = (file.home, file.fileName, file.attached)
    self.made = made
  }

  /// The file's name at the sender: one path component, chosen by the sender.
  ///
  /// The name is never empty, `.` or `..`, and contains no slash. An underscore replaces each
  /// control character, including line feeds and bidirectional controls, and a leading dash.
  /// Apart from these rules, the name may be any text.
  public var name: String { attached.receivedName }

  /// The size in bytes.
  public var size: Int { attached.size }

  /// The path of the file until the file is taken or its message is settled: read the file there,
  /// and do not change or move it.
  public var path: String {
    "\(home.container.path)/\(home.path)/files/\(fileName)"
  }

  /// Whether the file exists; false once it was taken, possibly by an earlier attempt to handle
  /// the message.
  public var exists: Bool {
    get throws(WormholeError) {
      try naming("find file", name, home.status(of: fileName, in: .files) != nil)
    }
  }

  /// Moves the file out of the container; call it before the message is acknowledged.
  ///
  /// The complete file appears at the path in one step. Within the container's file system, the
  /// file is moved. To another file system, it is copied under a name beside the path that begins
  /// with `.wormhole-`. Only a power cut or the death of the process leaves this copy behind,
  /// until the file is taken to the same path again. If the message was sent with
  /// ``Durability/power``, the file survives a power cut once the call has returned.
  ///
  /// If the process dies between this call and the acknowledgement, the message is redelivered,
  /// and ``exists`` is false then.
  ///
  /// The file of a queue's message is copied. If the message is not acknowledged, because the
  /// closure throws or its handling deadline has passed, the copy is removed again.
  ///
  /// - Parameters:
  ///   - path: the new path of the file; relative paths start at the working directory.
  ///   - isReplacing: whether to replace an existing file. If false, an existing file is an
  ///     error, ``WormholeError/Code-swift.struct/conflict``, and the received file can still be
  ///     taken.
  ///   - progress: called at intervals during a copy, on this thread; returns whether to
  ///     continue. If the closure cancels, the file can still be taken, and the call throws
  ///     ``WormholeError/Code-swift.struct/cancelled``. A file that is moved is moved at once.
  public func move(
    to path: String, replacing isReplacing: Bool = false,
    progress: ((FileProgress) -> ProgressDecision)? = nil
  ) throws(WormholeError) {
    let operation = "move file to"
    let target = UserPath(path)
    guard UserPath.isName(target.name), !path.utf8.contains(0) else {
      throw WormholeError(
        .invalidName, operation, path, because: "the path does not end in the name of a file")
    }
    try checkClaim(operation, path)
    let taking = MemberDirectory.TakeOptions(
      name: fileName, size: size, checksum: attached.checksum,
      durability: attached.synced == true ? .power : .process, isReplacing: isReplacing)
    let report: FileCopy.Report = { done in
      progress?(FileProgress(name: name, done: done, total: size)) != .cancel
    }
    do throws(MemberDirectory.AttachmentProblem) {
      if case .worker(let shared)? = claim {
        let copy = try home.copyAttachment(taking, to: target, report)
        // Recorded first: a copy that is not durable is removed as well.
        shared.took(copy)
        try home.makeDurable(copy, taking)
      } else {
        try home.takeAttachment(taking, to: target, report)
      }
    } catch {
      throw try explain(error, operation, path)
    }
  }

  /// Moves the file out of the container; call it before the message is acknowledged.
  ///
  /// The async overload; runs off the task's thread, including the progress closure. If the task
  /// is cancelled during a copy, the file can still be taken.
  public func move(
    to path: String, replacing isReplacing: Bool = false,
    progress: (@Sendable (FileProgress) -> ProgressDecision)? = nil
  ) async throws(WormholeError) {
    try await OffPool.run("move file to", path) { () throws(WormholeError) in
      try self.move(to: path, replacing: isReplacing, progress: OffPool.heeding(progress))
    }
  }

  /// Lends the file to a closure under the sender's file name, for code that depends on the name.
  ///
  /// The closure may read the file and move it away: the path is a second name of the file, and
  /// is invalid afterwards. Unlike `move(to:replacing:progress:)`, this call takes nothing from
  /// the message: if the process dies before the acknowledgement, the file is redelivered with
  /// the message. A write to the lent file before the acknowledgement, also after a move, spoils
  /// the file for another attempt.
  ///
  /// - Parameter body: receives the path.
  public func withOriginalName<Value>(_ body: (String) throws -> Value) throws -> Value {
    let operation = "link file under the original name"
    try checkClaim(operation, name)
    let lent: Result<Value, any Error>
    do throws(MemberDirectory.AttachmentProblem) {
      lent = try home.lendAttachment(fileName, size: size, as: name, body)
    } catch {
      throw try explain(error, operation, name)
    }
    return try lent.get()
  }

  private func explain(
    _ problem: MemberDirectory.AttachmentProblem, _ operation: String, _ path: String
  ) throws(WormholeError) -> WormholeError {
    switch problem {
    case .system(.fileExists):
      return WormholeError(
        .conflict, operation, path, because: "the destination exists already",
        hint: "choose another path, or pass 'replacing'", errno: .fileExists)
    case .missing, .system(.noSuchFile):
      guard try !exists else { break }
      return WormholeError(
        .notFound, operation, path, because: "'\(name)' was moved already", errno: .noSuchFile)
    default: break
    }
    return WormholeError(problem, operation, path, "'\(name)'")
  }

  /// A file that another attempt has claimed now belongs to that attempt.
  private func checkClaim(_ operation: String, _ path: String) throws(WormholeError) {
    guard let claim else { return }
    if try naming(operation, path, claim.isHeld) { return }
    throw WormholeError(
      .superseded, operation, path,
      because:
        "the message of file '\(name)' is settled, or another process has claimed the message")
  }

  /// The sender's metadata; nil if the sender gave none.
  ///
  /// As ``Message/value(as:)``, which throws if the message has no value.
  public func metadata<Metadata: Decodable & Sendable>(
    as type: Metadata.Type = Metadata.self
  ) throws(WormholeError) -> Metadata? {
    guard let contents else { return try made?.value(0, as: type) }
    return contents.document.count == 0 ? nil : try contents.value(0, as: type)
  }
}

/// The claim of a message that another receiver may have at any time, whose file is only copied.
protocol SharedClaim: Sendable {
  /// The directory with the file.
  var home: MemberDirectory { get }
  var fileName: String { get }
  /// Whether no other receiver has the message.
  var isHeld: Bool { get throws(Errno) }
  /// Records a copy, which is removed if the message is not acknowledged here.
  func took(_ copy: HandedCopy)
}
