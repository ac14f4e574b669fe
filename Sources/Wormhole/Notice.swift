public import Dispatch
public import SharedContainer
internal import Synchronization

extension Wormhole {
  /// A name that can be posted, and watched for being posted, in all processes that share the
  /// container.
  ///
  /// Nothing is carried and nothing is kept: who watches later hears of nothing that came before.
  /// Several postings in quick succession may be heard as one, the last of them is always heard,
  /// and one's own are heard like those of others. For anything with content there are channels.
  public struct Notice: Sendable {
    /// The notice's name.
    public let name: String
    let container: Container

    /// Tells all who watch it; does not wait for them.
    public func post() throws(WormholeError) { try container.post(name) }

    /// Calls a closure whenever the notice is posted.
    ///
    /// - Parameters:
    ///   - queue: where the closure is called; by default on a thread of the module's own.
    ///   - handler: is called once for several postings if it is not fast enough for each.
    public func watch(
      on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable () -> Void
    ) throws(WormholeError) -> Watching {
      // Nothing is read, so there is nothing that could fail later.
      try watching.observe(on: queue, handler, { _ in })
    }

    /// Calls an asynchronous closure, or one of an actor's, whenever the notice is posted.
    ///
    /// It is called as that of
    /// ``Channel/watch(present:on:_:failure:)-(_,Wormhole.ClosurePlace,_,_)`` is.
    public func watch(
      on place: ClosurePlace, _ handler: @escaping @isolated(any) @Sendable () async -> Void
    ) throws(WormholeError) -> Watching {
      try watching.observe(
        IsolatedHandler(isolation: handler.isolation) { _ in await handler() },
        IsolatedHandler { _ in })
    }

    /// An element whenever the notice is posted.
    public var posts: Updates<Void> { watching.updates }

    private var watching: WatchPlan<Void> {
      let (container, name) = (container, name)
      return WatchPlan(
        seen: [name: .posted(0)],
        join: { (listener) throws(WormholeError) in
          let feed = NoticeFeed(name)
          let watch = try container.watchNotice(name) { [weak listener] in
            feed.count()
            listener?.change(name)
          }
          listener.join(name, feed) { watch.stop() }
        }, interpreter: { { _, pass in pass(()) } })
    }
  }

  /// The notice of that name.
  ///
  /// Nothing is made or looked at before it is used; a name that cannot be used is an error then.
  public func notice(_ name: String) -> Notice { Notice(name: name, container: container) }
}

/// How often a watched notice was posted.
private final class NoticeFeed: Feed {
  private let name: String
  private let posts = Atomic<Int>(0)

  init(_ name: String) { self.name = name }

  func count() { posts.add(1, ordering: .relaxed) }

  func look() -> Finding {
    Finding(name: name, stamp: .posted(posts.load(ordering: .relaxed)))
  }
}
