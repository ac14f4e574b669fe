public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// A file that came with a message.
  ///
  /// It was compared with what was sent before the message was handed over. It is removed when the
  /// message is acknowledged, unless it was taken before.
  public struct ReceivedFile: Sendable {
    /// Nil for one that a test has made.
    private let delivery: Delivery?
    private let contents: Contents?
    private let home: MemberDirectory
    private let fileName: String
    private let attached: MessageFile.Attached
    private let made: MadeMessage?

    init(_ delivery: Delivery, _ contents: Contents, _ attached: MessageFile.Attached) {
      self.delivery = delivery
      self.contents = contents
      home = delivery.mailbox.home
      fileName = delivery.name.fileName
      self.attached = attached
      made = nil
    }

    /// The file of a message that a test has made.
    init(_ file: MadeFile, of made: MadeMessage) {
      delivery = nil
      contents = nil
      (home, fileName, attached) = (file.home, file.fileName, file.attached)
      self.made = made
    }

    /// What it was called where it came from: one path component, and chosen by the sender.
    ///
    /// It is never empty, `.` or `..`, and has no slash in it; other than that it may be anything.
    public var name: String { attached.name }

    /// How many bytes it has.
    public var size: Int { attached.size }

    /// Where it lies until it is taken, or its message ends: to be read there, and not to be
    /// changed or moved.
    public var path: String {
      "\(home.container.path)/\(home.path)/files/\(fileName)"
    }

    /// Whether it is there: false once it was taken, perhaps by an earlier attempt to handle the
    /// message.
    public var isThere: Bool {
      get throws(WormholeError) {
        do throws(Errno) {
          return try home.status(of: fileName, in: .files) != nil
        } catch {
          throw WormholeError(error, "look for file", name)
        }
      }
    }

    /// Moves it out of the container; to be done before the message is acknowledged.
    ///
    /// It appears at the path in one step, complete. On the container's file system it is moved; to
    /// another it is copied, under a name beside the path that begins with `.wormhole-`, and only a
    /// power cut or the process's death leaves that behind, until the file is taken there again. If
    /// the message was sent with ``Durability/power``, so is it there when this returns.
    ///
    /// Should the process die between this and the acknowledgement the message comes again, and
    /// ``isThere`` is false then.
    ///
    /// - Parameters:
    ///   - path: the file it is to become; relative paths are seen from the working directory.
    ///   - isReplacing: whether a file that is there already is replaced. Without it that is an
    ///     error, ``WormholeError/Code-swift.struct/conflict``, and the file stays to be taken.
    ///   - progress: is called now and then while it is copied, on this thread, and says whether to
    ///     go on; if not, the file stays to be taken, and this throws
    ///     ``WormholeError/Code-swift.struct/cancelled``. A file that is moved is moved at once.
    public func take(
      to path: String, replacing isReplacing: Bool = false,
      progress: ((FileProgress) -> FileDecision)? = nil
    ) throws(WormholeError) {
      let operation = "take file to"
      let target = UserPath(path)
      guard UserPath.isName(target.name), !path.utf8.contains(0) else {
        throw WormholeError(
          .invalidName, operation, path, because: "it does not end in the name of a file")
      }
      try checkClaim(operation, path)
      let taking = MemberDirectory.Taking(
        name: fileName, size: size, checksum: attached.checksum,
        durability: attached.synced == true ? .power : .process, isReplacing: isReplacing)
      do throws(MemberDirectory.AttachmentProblem) {
        try home.takeAttachment(taking, to: target) { done in
          progress?(FileProgress(name: name, done: done, total: size)) != .cancel
        }
      } catch {
        throw try explain(error, operation, path)
      }
    }

    /// Moves it out of the container; to be done before the message is acknowledged.
    ///
    /// As the one without `await`, off the task's thread, where the progress is told too; if the
    /// task is cancelled while it copies, the file stays to be taken.
    public func take(
      to path: String, replacing isReplacing: Bool = false,
      progress: (@Sendable (FileProgress) -> FileDecision)? = nil
    ) async throws(WormholeError) {
      try await OffPool.run("take file to", path) { () throws(WormholeError) in
        try self.take(to: path, replacing: isReplacing, progress: OffPool.heeding(progress))
      }
    }

    /// Lends it to a closure under the name that its sender's file had, for code that goes by that.
    ///
    /// The closure may read it, and move it away: it is a second name of the file, and the path
    /// leads nowhere afterwards. Unlike `take(to:replacing:progress:)` this takes nothing from
    /// the message: should the process die before it is acknowledged, the file comes again with it.
    /// Whoever writes to what was lent, or to where it was moved, before that spoils it for another
    /// attempt.
    ///
    /// - Parameter body: is called with the path.
    public func lend<Value>(_ body: (String) throws -> Value) throws -> Value {
      let operation = "lend file"
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
          .conflict, operation, path, because: "something of that name is there",
          hint: "take it elsewhere, or with 'replacing'", errno: .fileExists)
      case .missing, .system(.noSuchFile):
        guard try !isThere else { break }
        return WormholeError(
          .notFound, operation, path, because: "'\(name)' was taken before", errno: .noSuchFile)
      default: break
      }
      return WormholeError(problem, operation, path, "'\(name)'")
    }

    /// What another attempt has now is its own.
    private func checkClaim(_ operation: String, _ path: String) throws(WormholeError) {
      guard let delivery else { return }
      do throws(Errno) {
        if try home.status(of: delivery.claimed.text, in: .claimed) != nil { return }
      } catch {
        throw WormholeError(error, operation, path)
      }
      throw WormholeError(
        .superseded, operation, path,
        because: "the message of '\(name)' was ended, or another process has it now")
    }

    /// What the sender has told of it; nil if that was nothing.
    ///
    /// As ``Wormhole/Message/value(as:)``, which throws if there is nothing.
    public func metadata<Metadata: Decodable & Sendable>(
      as type: Metadata.Type = Metadata.self
    ) throws(WormholeError) -> Metadata? {
      guard let contents else { return try made?.value(as: type) }
      return contents.document.count == 0 ? nil : try contents.value(0, as: type)
    }
  }
}
