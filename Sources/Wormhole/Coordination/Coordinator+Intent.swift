internal import WormholeContainerStorage

extension Coordinator {
  /// The intended use of a path.
  ///
  /// A path is identified by its directory, after all links on the way to it are resolved. If the
  /// path itself is a link, the intent covers the link and its target. An intent covers the file,
  /// or the folder with all its content. The file need not exist yet.
  public struct Intent: Hashable, Sendable {
    enum Kind: Hashable, Sendable { case reading, writing, replacing }

    /// The requests that the presenters of the path receive.
    package enum Manner: Hashable, Sendable {
      /// To relinquish and to save; later, the presenters are notified of changes.
      case usual
      /// To relinquish, and not to save.
      case unsaved
      /// To relinquish, because the file is about to be removed.
      case deleting
      /// None; the presenters receive no notification either.
      case unnoticed
    }

    let kind: Kind
    package var manner = Manner.usual
    /// Whether a file to be replaced stays unchanged if the body makes no new file.
    package var mayMakeNothing = false
    /// The path from the caller, unchanged.
    public let path: String

    /// The file is read, and further accesses may read it at the same time.
    public static func reading(_ path: String) -> Intent { Intent(kind: .reading, path: path) }

    /// The file is changed in place, removed or created.
    public static func writing(_ path: String) -> Intent { Intent(kind: .writing, path: path) }

    /// The file is removed.
    ///
    /// As ``writing(_:)-(String)``, except that presenters are asked to release the file and not to
    /// save it.
    public static func deleting(_ path: String) -> Intent {
      Intent(kind: .writing, manner: .deleting, path: path)
    }

    /// A new file is made, and then takes the place of the old file in one step.
    ///
    /// The new file is made in a hidden directory beside the old file, so the process needs
    /// permission to make a directory there. If the path is a link, the link stays and its target
    /// is replaced.
    public static func replacing(_ path: String) -> Intent { Intent(kind: .replacing, path: path) }
  }

  /// An access that has begun.
  public struct Access: Sendable {
    /// The paths to use, in the order of the intents; for a replaced file, the path at which to
    /// make the new file.
    public let paths: [String]
    /// The paths of the intents, without links on the way to them.
    public let originals: [String]

    let stay: AccessSession

    /// Whether the access still holds, because no other process has taken it over.
    ///
    /// If false, this process was suspended until another access took over. Both may use the files
    /// now, and a file to be *replaced* will not be replaced. Each call reads the disk.
    public var isValid: Bool { stay.stands }

    /// Runs the body as if it were inside the access, on any thread.
    package func within<Result>(_ body: () -> Result) -> Result { stay.held.within(body) }
  }
}
