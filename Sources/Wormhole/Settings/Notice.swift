public import Dispatch
public import WormholeContainerStorage
internal import WormholeSyscalls

/// A name that each process of the container can post, and can watch for posts.
///
/// A notice has no content and is not stored: a later watcher is not notified of earlier posts.
/// Several posts in quick succession may lead to a single notification, but the last post is
/// always notified. A process is notified of its own posts too. For content there are channels.
public struct Notice: Sendable {
  /// The notice's name.
  public let name: String
  let container: SharedContainer

  /// Notifies all watchers; does not wait for their closures.
  public func post() throws(WormholeError) { try container.storage.post(name) }

  /// Calls a closure whenever the notice is posted.
  ///
  /// - Parameters:
  ///   - queue: the queue for the closure; by default a thread of the module.
  ///   - handler: is called once for several posts if it is too slow for each.
  ///   - failure: is called if the container is removed or moved away, which ends the watch.
  ///     Without this closure, the error goes to the log.
  @discardableResult
  public func watch(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable () -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching.observe(
      in: container.subscriptions, on: queue, handler, container.failureHandler(failure))
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
      in: container.subscriptions, IsolatedHandler { @MainActor _ in handler() },
      container.isolatedFailureHandler(failure))
  }

  /// Calls an asynchronous closure whenever the notice is posted.
  ///
  /// As ``watch(on:_:failure:)``; the closures are called from a task of the watch, each on the
  /// actor of its isolation, if any.
  @discardableResult
  public func watch(
    _ handler: @escaping @isolated(any) @Sendable () async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching.observe(
      in: container.subscriptions,
      IsolatedHandler(isolation: handler.isolation) { _ in await handler() },
      container.isolatedFailureHandler(failure))
  }

  /// Yields an element whenever the notice is posted, from the start of the iteration.
  public var posts: Updates<Void> { watching.updates }

  private var watching: WatchPlan<Void> {
    let (container, name) = (container, name)
    return WatchPlan(
      seen: [name: .posted(0)],
      join: { (listener) throws(WormholeError) in
        let posts = Monitor(0)
        let watch = try container.storage.watchNotice(name) { [weak listener] in
          posts.withLock { $0 += 1 }
          listener?.change(name)
        } ended: { [weak listener] end in
          listener?.fail(end.error("watch notice", name))
        }
        let look = { @Sendable in
          WatchResult(name: name, stamp: .posted(posts.withLock { $0 }))
        }
        listener.join(name, ChangeSource(look: look, leave: { watch.stop() }))
      },
      interpreter: {
        { (finding, pass) throws(WormholeError) in
          if case .failed(let error) = finding.stamp { throw error }
          pass(())
        }
      })
  }
}

extension SharedContainer {
  /// Returns the notice with a name.
  ///
  /// No file is made or read before the first use; a name that cannot be used is an error then.
  public func notice(_ name: String) -> Notice { Notice(name: name, container: self) }
}
