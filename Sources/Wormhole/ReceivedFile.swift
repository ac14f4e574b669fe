public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// A file that came with a message.
  ///
  /// It was compared with what was sent before the message was handed over. It is removed when the
  /// message is acknowledged, unless it was taken before.
  public struct ReceivedFile: Sendable {
    private let delivery: Delivery
    private let attached: MessageFile.Attached

    init(_ delivery: Delivery, _ attached: MessageFile.Attached) {
      self.delivery = delivery
      self.attached = attached
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
      let home = delivery.mailbox.home
      return "\(home.container.path)/\(home.path)/files/\(delivery.name.fileName)"
    }

    /// Whether it is there: false once it was taken, perhaps by an earlier attempt to handle the
    /// message.
    public var isThere: Bool {
      get throws(WormholeError) {
        do throws(Errno) {
          return try delivery.mailbox.home.status(of: delivery.name.fileName, in: .files) != nil
        } catch {
          throw WormholeError(error, "look for file", name)
        }
      }
    }

    /// Moves it out of the container; to be done before the message is acknowledged.
    ///
    /// It appears at the path in one step, complete. On the container's file system it is moved; to
    /// another it is copied, under a name beside the path that begins with `.wormhole-`, and only a
    /// power cut or the process's death leaves that behind. If the message was sent with
    /// ``Durability/power``, so is it there when this returns.
    ///
    /// Should the process die between this and the acknowledgement the message comes again, and
    /// ``isThere`` is false then.
    ///
    /// - Parameters:
    ///   - path: the file it is to become; relative paths are seen from the working directory.
    ///   - isReplacing: whether a file that is there already is replaced. Without it that is an
    ///     error, ``WormholeError/Code-swift.enum/conflict``, and the file stays to be taken.
    public func take(to path: String, replacing isReplacing: Bool = false) throws(WormholeError) {
      let operation = "take file to"
      let target = UserPath(path)
      guard UserPath.isName(target.name), !path.utf8.contains(0) else {
        throw WormholeError(
          .invalidName, operation, path, because: "it does not end in the name of a file")
      }
      try checkClaim(operation, path)
      let taking = MemberDirectory.Taking(
        name: delivery.name.fileName, size: size, checksum: attached.checksum,
        durability: attached.synced == true ? .power : .process, isReplacing: isReplacing)
      do throws(MemberDirectory.AttachmentProblem) {
        try delivery.mailbox.home.takeAttachment(taking, to: target) { _ in true }
      } catch {
        throw try explain(error, operation, path)
      }
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
      do throws(Errno) {
        let home = delivery.mailbox.home
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
      delivery.document.count == 0 ? nil : try delivery.value(0, as: type)
    }
  }
}
