public import Foundation
internal import Wormhole
internal import WormholeDropIns
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The center of notifications with content, between all programs of a user.
///
/// A post is stored in a channel of the container that all programs of the user share, among the
/// 100 latest posts of the last minute. Observers receive each post once, in the order of the
/// posts; a program that cannot run for a minute, or misses 100 posts, loses posts, as on devices.
public final class DistributedNotificationCenter: NSObject, Sendable {
  /// The time at which suspended programs receive a post; programs are never suspended here.
  public struct Options: OptionSet, Sendable {
    /// The bits of the options.
    public let rawValue: UInt
    /// Creates options from their bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// The post is delivered at once.
    public static let deliverImmediately = Options(rawValue: 1 << 0)
    /// The post goes to all sessions of the user, as each post does.
    public static let postToAllSessions = Options(rawValue: 1 << 1)
  }

  private static let only = DistributedNotificationCenter()
  /// Returns the center of this process.
  public static func `default`() -> DistributedNotificationCenter { only }

  private let state = Monitor(State())

  private struct State {
    var last = 0
    var observers: [Int: Observer] = [:]
    var watching: Subscription?
    /// The number of the post that was delivered last.
    var seen = 0
  }

  fileprivate struct Observer: Sendable {
    let name: String?
    let object: String?
    /// The last post before the registration.
    var since: Int
    /// The time of the registration, if the last post could not be read; nil once posts arrive.
    var begin: Double?
    let callback: @Sendable (DistributedPost) -> Void
    /// Closed by the removal of the observer.
    let gate: Gate
  }

  /// The registration that ``addObserver(forName:object:queue:using:)`` returns.
  private final class Token: NSObject {
    let number: Int
    init(_ number: Int) {
      self.number = number
      super.init()
    }
  }

  // MARK: Posting

  /// Sends a notification to all programs that observe it.
  ///
  /// - Parameters:
  ///   - name: the name of the notification.
  ///   - object: a text by which observers choose notifications.
  ///   - userInfo: the content, a property list with texts as keys; other content is refused, and
  ///     ``DropInLog`` reports the entry.
  ///   - deliverImmediately: ignored, as programs are never suspended here.
  public func postNotificationName(
    _ name: NSNotification.Name, object: String?, userInfo: [AnyHashable: Any]? = nil,
    deliverImmediately: Bool = true
  ) {
    SilentCall.attempt {
      var info: PropertyListValue?
      if let userInfo { info = .dictionary(try ParentApplication.take(userInfo)) }
      let post = DistributedPost(
        number: 0, time: Date().timeIntervalSince1970, name: name.rawValue, object: object,
        info: info)
      try Self.channel().update { posts in
        var all = posts ?? DistributedPosts()
        all.add(post)
        posts = all
      }
    }
  }

  /// Sends a notification to all programs that observe it.
  public func postNotificationName(
    _ name: NSNotification.Name, object: String?, userInfo: [AnyHashable: Any]? = nil,
    options: Options
  ) {
    postNotificationName(name, object: object, userInfo: userInfo, deliverImmediately: true)
  }

  /// Sends a notification to all programs that observe it; its object is a text or missing.
  public func post(
    name: NSNotification.Name, object: Any?, userInfo: [AnyHashable: Any]? = nil
  ) {
    postNotificationName(name, object: object as? String, userInfo: userInfo)
  }

  // MARK: Observing

  /// Calls a closure with each notification, until the returned object is given to
  /// ``removeObserver(_:)``.
  ///
  /// - Parameters:
  ///   - name: the name of the notifications; nil for all.
  ///   - object: the object of the notifications; nil for all.
  ///   - queue: the queue on which the closure is called; nil for the main queue.
  ///   - block: the closure.
  @preconcurrency
  public func addObserver(
    forName name: NSNotification.Name?, object: Any?, queue: OperationQueue?,
    using block: @escaping @Sendable (Notification) -> Void
  ) -> any NSObjectProtocol {
    let (main, gate) = (CallbackQueue(for: "a distributed notification"), Gate())
    let callback: @Sendable (DistributedPost) -> Void = { post in
      let call: @Sendable () -> Void = { if gate.isOpen { block(post.notification) } }
      if let queue { queue.addOperation(call) } else { main.call(call) }
    }
    let now = Date().timeIntervalSince1970
    let since: Int? = SilentCall.attempt { try Self.channel().value?.last ?? 0 }
    let (number, isFirst) = state.withLock { state in
      if state.observers.isEmpty, state.watching == nil { state.seen = since ?? 0 }
      state.last += 1
      state.observers[state.last] = Observer(
        name: name?.rawValue, object: object as? String, since: since ?? 0,
        begin: since == nil ? now : nil, callback: callback, gate: gate)
      return (state.last, state.watching == nil)
    }
    if isFirst, !watch() { watchLater(after: .milliseconds(100)) }
    return Token(number)
  }

  /// Ends an observation; a call that waits in a queue is not made.
  public func removeObserver(_ observer: Any) {
    guard let token = observer as? Token else { return }
    let gone = state.withLock { $0.observers.removeValue(forKey: token.number) }
    gone?.gate.close()
  }

  /// One watch of the process delivers to all observers.
  ///
  /// - Returns: whether there is a watch.
  private func watch() -> Bool {
    let isRunning = Gate()
    let watching = SilentCall.attempt {
      try Self.channel().watch { [unowned self] in
        deliver($0.value ?? DistributedPosts())
      } failure: { [unowned self] error in
        DropInLog.tell(.error, error)
        guard error.code == .notAContainer else { return }
        isRunning.close()
        watchAnew()
      }
    }
    guard let watching else { return false }
    let isUnwanted = state.withLock { state in
      if state.watching == nil, isRunning.isOpen { state.watching = watching }
      return state.watching !== watching
    }
    // Another thread has registered its first observer at the same time, or the container was
    // removed meanwhile: then the next attempt is due already.
    if isUnwanted { watching.stop() }
    return true
  }

  /// Continues with the next container of the user, after a program has removed the last one.
  ///
  /// The numbers of the posts begin anew there. The pause lets the program end its removal.
  private func watchAnew() {
    state.withLock { state in
      (state.watching, state.seen) = (nil, 0)
      for number in state.observers.keys { state.observers[number]?.since = 0 }
    }
    watchLater()
  }

  /// Tries until it succeeds, at growing intervals, because no notice tells that it is possible
  /// again.
  private func watchLater(after pause: Duration = .seconds(1)) {
    DispatchQueue.global().retry(after: pause) { [self] in
      let isWanted = state.withLock { !$0.observers.isEmpty && $0.watching == nil }
      return !isWanted || watch()
    }
  }

  private func deliver(_ posts: DistributedPosts) {
    let calls = state.withLock { state -> [(Observer, DistributedPost)] in
      // The channel has started again, with a new container.
      if posts.last < state.seen { state.seen = 0 }
      let new = posts.posts.filter { $0.number > state.seen }
      state.seen = max(posts.last, state.seen)
      let observers = state.observers.sorted { $0.key < $1.key }.map(\.value)
      let due = new.flatMap { post in
        observers.filter { $0.wants(post, of: posts) }.map { ($0, post) }
      }
      for number in state.observers.keys where state.observers[number]?.begin != nil {
        state.observers[number]?.since = posts.last
        state.observers[number]?.begin = nil
      }
      return due
    }
    for (observer, post) in calls { observer.callback(post) }
  }

  private static func channel() throws(WormholeError) -> Channel<DistributedPosts> {
    try SharedOpenings.user().channel("distributed notifications")
  }
}

extension DistributedNotificationCenter.Observer {
  fileprivate func wants(_ post: DistributedPost, of posts: DistributedPosts) -> Bool {
    (since > posts.last || post.number > since) && (begin.map { post.time >= $0 } ?? true)
      && (name == nil || name == post.name) && (object == nil || object == post.object)
  }
}

/// A notification in the container.
private struct DistributedPost: Codable, Hashable, Sendable {
  var number: Int
  /// Seconds since 1970.
  var time: Double
  var name: String
  var object: String?
  var info: PropertyListValue?

  var notification: Notification {
    Notification(
      name: Notification.Name(name), object: object,
      userInfo: info?.foundationDictionary.map { info in
        Dictionary(uniqueKeysWithValues: info.map { (AnyHashable($0.key), $0.value) })
      })
  }
}

/// The latest notifications of all programs.
private struct DistributedPosts: Codable, Hashable, Sendable {
  var last = 0
  var posts: [DistributedPost] = []

  mutating func add(_ post: DistributedPost) {
    // No program posts so often: a number without a next one was made up, and all begin anew.
    if last == .max { (last, posts) = (0, []) }
    last += 1
    posts.removeAll { abs(post.time - $0.time) > 60 }
    posts.append(post)
    posts[posts.count - 1].number = last
    posts.removeFirst(max(0, posts.count - 100))
  }
}
