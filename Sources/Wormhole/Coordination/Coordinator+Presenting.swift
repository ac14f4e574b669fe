public import Dispatch
internal import WormholeContainerStorage

extension Coordinator {
  /// The closures of a program that shows a file or a folder while accesses use it.
  ///
  /// The closures are independent, and an unset closure does nothing. All are called on the
  /// presenter's queue. A closure must call the completion closure that it receives, from any
  /// thread: the access waits for the call, for ``responseTimeout`` at most.
  public struct Presenter: Sendable {
    /// The intended use of the file.
    @nonexhaustive
    public enum Use: Hashable, Sendable {
      /// The access reads.
      case reading
      /// The access writes or removes the file.
      case writing
    }

    /// A change that another access may have made.
    public struct Change: Hashable, Sendable {
      /// The changed path: the presented file itself, an item in the presented folder, or a folder
      /// above; absolute, and without links on the way to it.
      public let path: String
      /// Whether the item did not exist before.
      public let isNew: Bool
      /// The path relative to the presented folder; nil for the presented item itself and for a
      /// folder above.
      public let relativePath: String?
    }

    /// Called before another access uses the file: pause, and call `goOn`.
    ///
    /// The closure passed to `goOn` is called when the access is over. If neither this closure nor
    /// ``save`` is set, readers do not ask the presenter and take no longer than without a
    /// presenter.
    public var relinquish:
      (
        @Sendable (
          _ use: Use, _ goOn: @escaping @Sendable (_ resume: (@Sendable () -> Void)?) -> Void
        ) -> Void
      )?

    /// Called before another access uses the file: save unsaved changes with an ordinary access, to
    /// make them visible.
    public var save: (@Sendable (_ done: @escaping @Sendable () -> Void) -> Void)?

    /// Called before the file, or a folder above it, is removed.
    public var delete: (@Sendable (_ done: @escaping @Sendable () -> Void) -> Void)?

    /// Called before an item in the presented folder is removed, with its path relative to the
    /// folder.
    public var deleteBelow:
      (@Sendable (_ below: String, _ done: @escaping @Sendable () -> Void) -> Void)?

    /// Called after the file may have changed: read it again.
    public var didChange: @Sendable (Change) -> Void = { _ in }

    /// A move by another access.
    public struct Move: Hashable, Sendable {
      /// The old path of the presented item, or of an item in the presented folder; absolute, and
      /// without links on the way to it, as all paths here.
      public let from: String
      /// The new path.
      public let to: String
      /// The old path relative to the presented folder; nil for the presented item itself, which is
      /// presented at ``to`` from now on.
      public let oldRelativePath: String?
      /// The new path relative to the presented folder; nil if the item is not in the folder.
      public let newRelativePath: String?
    }

    /// Called after another access has moved the presented item, or an item in the presented
    /// folder, and has reported the move.
    ///
    /// A moved item is presented at its new path from then on, without another call of `present`,
    /// and ``didChange`` follows. If this closure is nil, only ``didChange`` is called. The access
    /// in which the item was moved has not ended yet.
    public var didMove: (@Sendable (Move) -> Void)?

    /// Whether the presenter has work to do before another access reads.
    var mindsReaders: Bool { relinquish != nil || save != nil }

    /// A presenter that does nothing.
    public init() {}

    /// The longest time that an access waits for the presenters of its paths.
    public static let responseTimeout = Duration.seconds(2)
  }

  /// Registers a presenter, which is asked before other accesses use a file, or anything in a
  /// folder, and notified afterwards, until it is stopped.
  ///
  /// Accesses of this coordinator's ``purpose`` neither ask nor notify the presenter. Like other
  /// subscriptions, it continues whether or not the program retains the returned object. The
  /// presenter is asked to relinquish first, and then to save; before a removal, to delete in place
  /// of saving. An access inside the closures asks no presenter. See <doc:Coordination>.
  ///
  /// - Parameters:
  ///   - path: the file or directory; it need not exist yet.
  ///   - queue: the queue for the closures; by default, a queue of the presenter's own. An access
  ///     on this queue keeps the presenter from replying in the meantime.
  ///   - presenter: the closures to call.
  @discardableResult
  public func present(
    _ path: String, on queue: DispatchQueue? = nil, as presenter: Presenter
  ) throws(WormholeError) -> Subscription {
    if queue != nil { try TaskPool.start("present", path) }
    let queue: any CallQueue = queue ?? WorkQueue()
    return try present(path, as: presenter) { call in queue.soon(call) }
  }

  /// The same, with a function that brings each call to its queue or actor.
  package func present(
    _ path: String, as presenter: Presenter,
    perform: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
  ) throws(WormholeError) -> Subscription {
    try WormholeError.checkNoCopy("present", path)
    let file = PresentedFile(presenter, purpose: purpose, orderedBy, perform)
    return try file.begin(at: AccessPath.resolve(path))
  }
}
