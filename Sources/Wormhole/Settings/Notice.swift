public import Dispatch
public import SharedContainer
internal import Syscalls

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
    let hole: Wormhole

    /// Tells all who watch it; does not wait for them.
    public func post() throws(WormholeError) { try hole.container.post(name) }

    /// Calls a closure whenever the notice is posted.
    ///
    /// - Parameters:
    ///   - queue: where the closure is called; by default on a thread of the module's own.
    ///   - handler: is called once for several postings if it is not fast enough for each.
    ///   - failure: is called if the container is removed or moved away, which ends the watch.
    ///     Without it, the error goes to the log.
    @discardableResult
    public func watch(
      on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable () -> Void,
      failure: (@Sendable (WormholeError) -> Void)? = nil
    ) throws(WormholeError) -> Subscription {
      try watching.observe(in: hole.begun, on: queue, handler, hole.failureHandler(failure))
    }

    /// Calls a closure of the main actor whenever the notice is posted:
    /// `watch { @MainActor in … }`.
    ///
    /// As ``watch(on:_:failure:)``.
    @discardableResult
    public func watch(
      _ handler: @escaping @MainActor @Sendable () -> Void,
      failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
    ) throws(WormholeError) -> Subscription {
      try watching.observe(
        in: hole.begun, IsolatedHandler { @MainActor _ in handler() },
        hole.isolatedFailureHandler(failure))
    }

    /// Calls an asynchronous closure whenever the notice is posted.
    ///
    /// As ``watch(on:_:failure:)``; the closures are called from a task of the watch's own, each on
    /// the actor that it is isolated to, if it is to one.
    @discardableResult
    public func watch(
      _ handler: @escaping @isolated(any) @Sendable () async -> Void,
      failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
    ) throws(WormholeError) -> Subscription {
      try watching.observe(
        in: hole.begun, IsolatedHandler(isolation: handler.isolation) { _ in await handler() },
        hole.isolatedFailureHandler(failure))
    }

    /// An element whenever the notice is posted, once iterating has begun.
    public var posts: Updates<Void> { watching.updates }

    private var watching: WatchPlan<Void> {
      let (hole, name) = (hole, name)
      return WatchPlan(
        seen: [name: .posted(0)],
        join: { (listener) throws(WormholeError) in
          let posts = Monitor(0)
          let watch = try hole.container.watchNotice(name) { [weak listener] in
            posts.withLock { $0 += 1 }
            listener?.change(name)
          } ended: { [weak listener] end in
            listener?.fail(end.error("watch notice", name))
          }
          let look = { @Sendable in
            Finding(name: name, stamp: .posted(posts.withLock { $0 }))
          }
          listener.join(name, Listener.Source(look: look, leave: { watch.stop() }))
        },
        interpreter: {
          { (finding, pass) throws(WormholeError) in
            if case .failed(let error) = finding.stamp { throw error }
            pass(())
          }
        })
    }
  }

  /// The notice of that name.
  ///
  /// Nothing is made or looked at before it is used; a name that cannot be used is an error then.
  public func notice(_ name: String) -> Notice { Notice(name: name, hole: self) }
}
