internal import SharedContainer

extension Wormhole.Coordinator {
  /// What is to be done with one path.
  ///
  /// A path counts by the directory it lies in, whatever links lead there; a link itself counts
  /// with what it leads to. What it is about is the file, or the folder with all that lies in it;
  /// it need not be there yet.
  public struct Intent: Hashable, Sendable {
    enum Kind: Hashable, Sendable { case reading, writing, replacing }

    /// What those who present it are asked.
    package enum Manner: Hashable, Sendable {
      /// To hold off and to save, and they are told of changes.
      case usual
      /// To hold off, and not to save.
      case unsaved
      /// To hold off, as it will not be there any more.
      case deleting
      /// Nothing, and they are told nothing.
      case unnoticed
    }

    let kind: Kind
    package var manner = Manner.usual
    /// Of what is replaced: whether it stays as it is where nothing is made for it.
    package var mayMakeNothing = false
    /// As the caller gave it.
    public let path: String

    /// It is read, as others may read it meanwhile.
    public static func reading(_ path: String) -> Intent { Intent(kind: .reading, path: path) }

    /// It is changed where it is, removed, or made.
    public static func writing(_ path: String) -> Intent { Intent(kind: .writing, path: path) }

    /// It is removed: as ``writing(_:)``, and those who present it are asked to let it go, not to
    /// save it.
    public static func deleting(_ path: String) -> Intent {
      Intent(kind: .writing, manner: .deleting, path: path)
    }

    /// Something new is made for it, which then takes its place in one step.
    ///
    /// The new one is made in a hidden directory beside the old one, so that it must be allowed to
    /// make one there. A link stays, and what it leads to is replaced.
    public static func replacing(_ path: String) -> Intent { Intent(kind: .replacing, path: path) }
  }

  /// An access that has begun.
  public struct Access: Sendable {
    /// The paths to use, in the order of the intents: of what is replaced, where the new one is to
    /// be made.
    public let paths: [String]
    /// The paths that the intents are about, without links on the way to them.
    public let originals: [String]

    let stay: AccessStay

    /// Whether others have left it alone.
    ///
    /// If not, this process stood still for so long that others took over: both may use the files
    /// now, and what is to be *replaced* will not be. To ask takes a look at the disk.
    public var stands: Bool { stay.stands }

    /// Has the body count as inside of it, on whatever thread it runs.
    package func within<Result>(_ body: () -> Result) -> Result { stay.held.within(body) }
  }
}
