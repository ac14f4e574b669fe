public import Foundation
internal import Synchronization
public import Wormhole
internal import WormholeDropIns
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The containing app of a group, from the view of its extensions: started when they need it.
///
/// The app is the member of the group's container whose name is the group's own identifier. The
/// command to start the app is registered once:
/// `wormhole wake GROUP --group GROUP --register -- PROGRAM`.
public enum ParentApplication {
  /// The group for ``WKInterfaceController/openParentApplication(_:reply:)`` and
  /// ``serve(_:group:)``; by default the value of `WORMHOLE_GROUP`.
  public static var group: String? {
    get { settings.withLock { $0.group } ?? Processes.environment("WORMHOLE_GROUP") }
    set { settings.withLock { $0.group = newValue } }
  }

  /// How long an extension waits for the app's reply, including the app's start; by default 30
  /// seconds.
  public static var timeout: Duration {
    get { settings.withLock { $0.timeout } }
    set { settings.withLock { $0.timeout = newValue } }
  }

  private static let settings = Monitor((group: String?.none, timeout: Duration.seconds(30)))
  private static let serving = Monitor<[ServedMember]>([])

  private struct ServedMember: Sendable {
    let member: Member
    let responding: Subscription
  }

  static let kind = "openParentApplication"

  /// Makes this process the containing app: its delegate handles the requests of extensions, on the
  /// main queue, which the program has to run.
  ///
  /// The app serves until ``stop()`` or the end of the process. The delegate is retained.
  ///
  /// - Throws: ``WormholeError/Code-swift.struct/nameTaken`` if the app runs already.
  public static func serve(
    _ delegate: any UIApplicationDelegate, group: String? = nil
  ) throws(WormholeError) {
    let group = if let group { group } else { try named("serve") }
    let member = try SharedOpenings.group(group).join(as: group)
    let callbacks = CallbackQueue(for: "requests of an extension to '\(group)'")
    let application = UIApplication.shared
    application.delegate = delegate
    // A delegate is called on the main queue alone, where it was made.
    let keeper = UncheckedBox(delegate)
    let responding = member.respond(toKind: kind) { request in
      callbacks.call { ask(keeper.value, application, request) }
    }
    serving.withLock { $0.append(ServedMember(member: member, responding: responding)) }
  }

  /// Stops being the containing app, of all groups; does nothing if this process is not a
  /// containing app.
  public static func stop() {
    let all = serving.withLock { exchange(&$0, with: []) }
    for serving in all {
      serving.responding.stop()
      serving.member.leave()
    }
  }

  private static func ask(
    _ delegate: any UIApplicationDelegate, _ application: UIApplication, _ request: Request
  ) {
    let question: [String: Any]?
    do throws(WormholeError) {
      question = try request.value(as: PropertyListValue.self).foundationDictionary
    } catch {
      return request.refuse("\(error)")
    }
    let awaited = AwaitedReply(request)
    delegate.application(application, handleWatchKitExtensionRequest: question) { reply in
      awaited.isCalled.store(true, ordering: .releasing)
      let request = awaited.request
      do {
        try request.reply(PropertyListValue.dictionary(Self.take(reply ?? [:])))
      } catch {
        request.refuse("\(error)")
      }
    }
  }

  static func take(_ dictionary: [AnyHashable: Any]) throws(NotAPropertyList)
    -> [String: PropertyListValue]
  {
    var named: [String: Any] = [:]
    for (key, value) in dictionary {
      guard let text = key.base as? String else {
        throw NotAPropertyList(place: "\(key)", type: "\(type(of: key.base)) as a key")
      }
      named[text] = value
    }
    return try PropertyListValue.dictionary(any: named)
  }

  static func named(_ operation: String) throws(WormholeError) -> String {
    if let group { return group }
    throw WormholeError(
      .invalidValue, operation, "the containing app", because: "no group is set",
      hint: "set ParentApplication.group, or WORMHOLE_GROUP")
  }
}

/// A request whose reply the delegate's closure sends.
///
/// The closure holds the object. If the closure is released without a call, the extension is told
/// at once, and not by its time limit.
private final class AwaitedReply: Sendable {
  let request: Request
  let isCalled = Atomic<Bool>(false)

  init(_ request: Request) { self.request = request }

  deinit {
    guard !isCalled.load(ordering: .acquiring) else { return }
    request.refuse("the containing app has released the closure for its reply without a call")
  }
}

/// The object that represents the running app for its delegate.
public final class UIApplication: NSObject, @unchecked Sendable {
  // The only state is the delegate, which the monitor guards.

  /// The only instance.
  public static let shared = UIApplication()

  private let told = Monitor<UncheckedBox<any UIApplicationDelegate>?>(nil)

  /// The delegate that handles the requests of extensions.
  public internal(set) var delegate: (any UIApplicationDelegate)? {
    get { told.withLock { $0 }?.value }
    set {
      let new = newValue.map { UncheckedBox($0) }
      let gone = told.withLock { exchange(&$0, with: new) }
      // Released without holding the lock, because its end may use the application.
      _ = gone
    }
  }

  private override init() {}
}

/// The containing app's replies to its extensions.
@preconcurrency
public protocol UIApplicationDelegate: AnyObject {
  /// Replies to an extension, once, during the call or later.
  ///
  /// - Parameters:
  ///   - application: the app.
  ///   - userInfo: the extension's request.
  ///   - reply: takes the reply, from any thread.
  func application(
    _ application: UIApplication, handleWatchKitExtensionRequest userInfo: [AnyHashable: Any]?,
    reply: @escaping @Sendable ([AnyHashable: Any]?) -> Void)
}

/// The part of an extension's controller that sends requests to the containing app.
open class WKInterfaceController: NSObject {
  /// Starts the containing app if it does not run, sends it a request, and delivers its reply once.
  ///
  /// - Parameters:
  ///   - userInfo: the request; property-list values, with strings as keys.
  ///   - reply: is called on the main queue, with the app's reply or the reason why there is none;
  ///     a closure that is isolated to another actor is called there.
  /// - Returns: whether the request is being sent: false if no group is named, or if the request
  ///   contains a value that no property list can contain; ``DropInLog`` reports the cause.
  @discardableResult
  open class func openParentApplication(
    _ userInfo: [AnyHashable: Any],
    reply: (@isolated(any) ([AnyHashable: Any], (any Error)?) -> Void)? = nil
  ) -> Bool {
    let group: String
    let question: [String: PropertyListValue]
    do {
      group = try ParentApplication.named("open")
      question = try ParentApplication.take(userInfo)
    } catch {
      // An error of the library names the operation itself.
      DropInLog.tell(
        .error, error is WormholeError ? "\(error)" : "cannot open the containing app: \(error)")
      return false
    }
    let callbacks = CallbackQueue(for: "the containing app's reply")
    let isolation = Isolation(reply?.isolation)
    // As `Handler.callHere`: the isolation of a closure is data of the closure.
    typealias Body = ([AnyHashable: Any], (any Error)?) -> Void
    let body = UncheckedBox(reply.map { unsafeBitCast($0, to: Body.self) })
    let timeout = ParentApplication.timeout
    // The call waits, for the app's start and for its reply, and many calls may wait at once.
    DispatchQueue.global().async {
      do throws(WormholeError) {
        let answer = try SharedOpenings.group(group).peer(group).request(
          PropertyListValue.dictionary(question), as: PropertyListValue.self,
          kind: ParentApplication.kind, within: timeout, waking: true)
        isolation.run(on: callbacks) {
          body.value?(answer.foundationDictionary ?? [:], nil)
        }
      } catch {
        isolation.run(on: callbacks) { body.value?([:], error) }
      }
    }
    return true
  }
}
