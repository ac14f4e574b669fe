public import Dispatch
internal import SharedContainer

extension Wormhole.Coordinator {
  /// What a program does that shows a file, or a folder, while others use it.
  ///
  /// Each closure stands for itself, and those that are not set do nothing. They are called on the
  /// presenter's queue. One that is given something to call has to call it, from any thread: the
  /// access waits for that, for ``patience`` at most.
  public struct Presenter: Sendable {
    /// What others want to do.
    @nonexhaustive
    public enum Use: Hashable, Sendable {
      /// They read.
      case reading
      /// They write, or remove it.
      case writing
    }

    /// What others may have changed.
    public struct Change: Hashable, Sendable {
      /// What it is: the presented file itself, something in the presented folder, or a folder
      /// above; absolute, and without links on the way to it.
      public let path: String
      /// Whether it was not there before.
      public let isNew: Bool
      /// Where it lies in the presented folder; nil for what is presented itself, and for what is
      /// above.
      public let below: String?
    }

    /// Somebody wants to use it: hold off, and go on.
    ///
    /// What is given to `goOn` is called when the access is over. If neither this nor ``save`` is
    /// set, those who read ask nothing, and take no longer than if nobody presented it.
    public var relinquish:
      (
        @Sendable (
          _ use: Use, _ goOn: @escaping @Sendable (_ resume: (@Sendable () -> Void)?) -> Void
        ) -> Void
      )?

    /// Save what is not saved, with an ordinary access, so that the others see it.
    public var save: (@Sendable (_ done: @escaping @Sendable () -> Void) -> Void)?

    /// It is about to be removed, or a folder that it lies in.
    public var delete: (@Sendable (_ done: @escaping @Sendable () -> Void) -> Void)?

    /// Something in the presented folder is about to be removed; where it lies in there.
    public var deleteBelow:
      (@Sendable (_ below: String, _ done: @escaping @Sendable () -> Void) -> Void)?

    /// Somebody may have changed it: look again.
    public var changed: @Sendable (Change) -> Void = { _ in }

    /// What others have moved.
    public struct Move: Hashable, Sendable {
      /// Where it was: what is presented, or something in the presented folder; absolute, and
      /// without links on the way to it, as all of these.
      public let from: String
      /// Where it is.
      public let to: String
      /// Where it lay in the presented folder; nil for what is presented itself, which is presented
      /// at ``to`` from now on.
      public let below: String?
      /// Where it lies in the presented folder, if it does.
      public let nowBelow: String?
    }

    /// Somebody has moved it, and says so: what is presented, or something in the presented folder.
    ///
    /// What is presented is so at its new path from then on, without being presented anew, and
    /// ``changed`` follows. If this is nil ``changed`` alone is called. Whoever has moved it is
    /// still inside the access in which that was done.
    public var moved: (@Sendable (Move) -> Void)?

    /// Whether it has anything to do before others read.
    var mindsReaders: Bool { relinquish != nil || save != nil }

    /// One that does nothing.
    public init() {}

    /// How long an access waits at most for those who present what it uses.
    public static let patience = Duration.seconds(2)
  }

  /// Has a presenter asked before others use a file, or anything in a folder, and told afterwards,
  /// until it is stopped.
  ///
  /// Accesses of this coordinator's ``purpose`` neither ask nor tell it. It goes on whether or not
  /// anybody keeps what this returns, as other subscriptions do. It is asked to relinquish first,
  /// and then to save, or, before a removal, to delete. What is accessed inside the closures asks
  /// nobody. See <doc:Coordination>.
  ///
  /// - Parameters:
  ///   - path: which file or directory; it need not be there yet.
  ///   - queue: where the closures are called; by default one of its own. An access that is made on
  ///     it keeps it from answering others meanwhile.
  ///   - presenter: what is called.
  @discardableResult
  public func present(
    _ path: String, on queue: DispatchQueue? = nil, as presenter: Presenter
  ) throws(WormholeError) -> Wormhole.Subscription {
    let queue = queue ?? DispatchQueue(label: "wormhole.presenter")
    return try present(path, as: presenter) { call in queue.async(execute: call) }
  }

  /// The same, with what brings calls to where they belong.
  package func present(
    _ path: String, as presenter: Presenter,
    perform: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
  ) throws(WormholeError) -> Wormhole.Subscription {
    let file = PresentedFile(presenter, purpose: purpose, orderedBy, perform)
    return try file.begin(at: AccessPath.resolve(path))
  }
}
