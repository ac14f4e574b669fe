public import Foundation
internal import Wormhole
internal import WormholeDropIns
internal import WormholeSyscalls

/// The location where a call stores its error.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?

/// A coordinator of file accesses between programs, as on devices, but without the deadlock of
/// devices.
///
/// The class is ``Coordinator`` under the names of Foundation's class. A call
/// waits until no conflicting access remains, runs the accessor on the calling thread, and returns.
/// If the call fails earlier, the accessor is not called, and the error is set. A wait ends after
/// ``timeout``, and when the process of a conflicting access is suspended.
///
/// The presenters of a file are asked before an access, and notified afterwards:
/// ``NSFilePresenter``.
open class NSFileCoordinator: NSObject, @unchecked Sendable {
  // All mutable state is in the monitor.
  private let state: Monitor<State>
  private let owner = ProcessCopy.current

  private struct State: Sendable {
    var coordinator: Coordinator
    /// The purpose of the presenter with which the coordinator was made.
    var presenter: String?
    var timeout: Duration?
    var takeOverAfter: Duration?
    /// The accesses whose accessors run, by sequential number.
    var underWay: [Int: Coordinator.Access] = [:]
    var begun = 0
  }

  /// The manner in which a file is read.
  public struct ReadingOptions: OptionSet, Sendable {
    /// The raw value, as on devices.
    public let rawValue: UInt
    /// Makes the options of a raw value.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// No presenter is asked to save first.
    public static let withoutChanges = ReadingOptions(rawValue: 1 << 0)
    /// A symbolic link stands for its target; here this is always the case.
    public static let resolvesSymbolicLink = ReadingOptions(rawValue: 1 << 1)
    /// Immediately available metadata of the file suffices; here the file always exists locally.
    public static let immediatelyAvailableMetadataOnly = ReadingOptions(rawValue: 1 << 2)
    /// The file is read to be sent elsewhere: the accessor receives a copy of the file.
    ///
    /// No program changes the copy, which is removed when the accessor has returned.
    ///
    /// If the accessor receives only copies, other accesses may continue in the meantime. A folder
    /// cannot be read in this manner here: devices make an archive of the folder, and here the call
    /// fails with `NSFeatureUnsupportedError`.
    public static let forUploading = ReadingOptions(rawValue: 1 << 3)
  }

  /// The manner in which a file is written.
  public struct WritingOptions: OptionSet, Sendable {
    /// The raw value, as on devices.
    public let rawValue: UInt
    /// Makes the options of a raw value.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The file is removed: its presenters are asked to close the file, and not to save it.
    public static let forDeleting = WritingOptions(rawValue: 1 << 0)
    /// The file is moved: ``item(at:didMoveTo:)`` notifies its presenters.
    public static let forMoving = WritingOptions(rawValue: 1 << 1)
    /// The file is read as well.
    public static let forMerging = WritingOptions(rawValue: 1 << 2)
    /// Another file replaces this one: the accessor receives a location beside the file.
    ///
    /// A file that the accessor makes there is moved into place when the accessor has returned.
    ///
    /// If the accessor makes no file there, the original file remains unchanged.
    public static let forReplacing = WritingOptions(rawValue: 1 << 3)
    /// Only metadata of the file is changed: no presenter is asked or notified.
    public static let contentIndependentMetadataOnly = WritingOptions(rawValue: 1 << 4)
  }

  /// A coordinator without a presenter.
  public override init() {
    state = Monitor(State(coordinator: Coordinator()))
    super.init()
  }

  /// A coordinator of a presenter.
  ///
  /// - Parameter filePresenter: the presenter that is neither asked nor notified about the accesses
  ///   of this coordinator; nil for none.
  public init(filePresenter: (any NSFilePresenter)?) {
    let presenter = filePresenter.map { FilePresenters.purpose(of: $0) }
    let coordinator = Coordinator(nil, presenter: presenter)
    state = Monitor(State(coordinator: coordinator, presenter: presenter))
    super.init()
  }

  // MARK: Presenters

  /// Registers a presenter, which is asked before other accesses to the presented item, and
  /// notified afterwards, until the presenter is removed.
  ///
  /// The presenter is not retained, as on devices: a presenter that is released is no longer asked
  /// or notified, and may remove itself in its `deinit`.
  ///
  /// If registering is not possible, the log reports the cause.
  open class func addFilePresenter(_ filePresenter: any NSFilePresenter) {
    FilePresenters.add(filePresenter)
  }

  /// Removes a presenter, which is then no longer asked or notified; waits for a call that is in
  /// progress on another thread.
  open class func removeFilePresenter(_ filePresenter: any NSFilePresenter) {
    FilePresenters.remove(filePresenter)
  }

  /// All presenters of this process.
  open class var filePresenters: [any NSFilePresenter] { FilePresenters.all }

  /// The purpose of the coordinator: accesses with the same purpose never wait for each other.
  ///
  /// By default the purpose is unique. Set the property before the first access.
  open var purposeIdentifier: String {
    get { coordinator.purpose }
    set {
      state.withLock { state in
        // In a forked child, the presenter belongs to the parent.
        state.coordinator = Coordinator(
          purpose: newValue, nil, presenter: owner.isCurrent ? state.presenter : nil)
      }
    }
  }

  /// The time limit of a call; 30 seconds by default, and ``takeOverAfter`` more.
  ///
  /// Devices have no such property, and wait without a limit.
  public var timeout: Duration {
    get { state.withLock { Coordinator.timeout($0.timeout, $0.takeOverAfter) } }
    set { state.withLock { $0.timeout = newValue } }
  }

  /// How long a process must have been suspended before its access is taken over.
  ///
  /// With nil, the default, no access is taken over, and a call fails if it would have to wait for
  /// a suspended process.
  ///
  /// When the suspended process resumes, both processes may use the files.
  public var takeOverAfter: Duration? {
    get { state.withLock { $0.takeOverAfter } }
    set { state.withLock { $0.takeOverAfter = newValue } }
  }

  private var coordinator: Coordinator { state.withLock { $0.coordinator } }

  // MARK: Accesses

  /// Calls the accessor to read, while no other access writes the file.
  open func coordinate(
    readingItemAt url: URL, options: ReadingOptions = [], error outError: NSErrorPointer,
    byAccessor reader: (URL) -> Void
  ) {
    run([NSFileAccessIntent.intent(url, options)], outError) { reader($0[0]) }
  }

  /// Calls the accessor to write, while no other access uses the file.
  open func coordinate(
    writingItemAt url: URL, options: WritingOptions = [], error outError: NSErrorPointer,
    byAccessor writer: (URL) -> Void
  ) {
    run([NSFileAccessIntent.intent(url, options)], outError) { writer($0[0]) }
  }

  /// Calls the accessor to read one file and write another.
  open func coordinate(
    readingItemAt readingURL: URL, options readingOptions: ReadingOptions = [],
    writingItemAt writingURL: URL, options writingOptions: WritingOptions = [],
    error outError: NSErrorPointer, byAccessor readerWriter: (URL, URL) -> Void
  ) {
    let intents = [
      NSFileAccessIntent.intent(readingURL, readingOptions),
      NSFileAccessIntent.intent(writingURL, writingOptions),
    ]
    run(intents, outError) { readerWriter($0[0], $0[1]) }
  }

  /// Calls the accessor to write both files.
  open func coordinate(
    writingItemAt url1: URL, options options1: WritingOptions = [],
    writingItemAt url2: URL, options options2: WritingOptions = [],
    error outError: NSErrorPointer, byAccessor writer: (URL, URL) -> Void
  ) {
    let intents = [
      NSFileAccessIntent.intent(url1, options1), NSFileAccessIntent.intent(url2, options2),
    ]
    run(intents, outError) { writer($0[0], $0[1]) }
  }

  /// Gets all files at once, and calls the accessor, which uses each file through this coordinator.
  ///
  /// The accessor calls its completion handler when it is done.
  open func prepare(
    forReadingItemsAt readingURLs: [URL], options readingOptions: ReadingOptions = [],
    writingItemsAt writingURLs: [URL], options writingOptions: WritingOptions = [],
    error outError: NSErrorPointer,
    byAccessor batchAccessor: (_ completionHandler: @escaping @Sendable () -> Void) -> Void
  ) {
    // The accesses inside the batch replace or copy their files, so the batch itself does neither.
    let intents =
      readingURLs.map {
        NSFileAccessIntent.intent($0, readingOptions.subtracting(.forUploading))
      }
      + writingURLs.map {
        NSFileAccessIntent.intent($0, writingOptions.subtracting(.forReplacing))
      }
    run(intents, outError) { _ in
      let isDone = Monitor(false)
      batchAccessor { isDone.signal { $0 = true } }
      isDone.wait(until: nil) { $0 ? () : nil }
    }
  }

  /// Waits for all files on another thread, and calls the accessor on the queue.
  ///
  /// The accessor finds the locations in the intents. If the wait has failed, the accessor receives
  /// an error, and no locations. An accessor that is isolated to an actor is called there, and not
  /// on the queue.
  open func coordinate(
    with intents: [NSFileAccessIntent], queue: OperationQueue,
    byAccessor accessor: @escaping @isolated(any) ((any Error)?) -> Void
  ) {
    let accessor = Handler(accessor)
    let (coordinator, timeout, takeOver) = state.withLock {
      ($0.coordinator, $0.timeout, $0.takeOverAfter)
    }
    // The call is announced first: from the return of this function on, `cancel()` reaches the
    // call.
    let call = coordinator.announce()
    let wait: @Sendable () -> Void = { [self] in
      var isGiven = false
      do {
        let all = intents.map(\.wanted)
        try access(all, by: coordinator, call, timeout, takeOver) { urls, access in
          isGiven = true
          for (intent, url) in zip(intents, urls) { intent.use(url) }
          let isDone = Monitor(false)
          Self.run(accessor, on: queue) { [self] in
            guard let access else { return accessor.callHere(nil) }
            access.within { during(access) { accessor.callHere(nil) } }
          } ended: {
            isDone.signal { $0 = true }
          }
          isDone.wait(until: nil) { $0 ? () : nil }
        }
      } catch {
        // If the accessor has run, no caller is left for the error.
        guard !isGiven else { return DropInLog.tell(.error, error) }
        let error = NSError.cocoa(error, of: intents.map(\.wanted))
        Self.run(accessor, on: queue) { accessor.callHere(error) }
      }
    }
    do throws(Errno) {
      try WormholeSyscalls.Thread("file-coordination", wait).detach()
    } catch {
      coordinator.forget(call)
      let error = NSError.cocoa(
        WormholeError(error, "coordinate", intents.first?.wanted.intent.path ?? ""),
        of: intents.map(\.wanted))
      Self.run(accessor, on: queue) { accessor.callHere(error) }
    }
  }

  /// Runs a call of an accessor on its queue, or on the actor to which it is isolated.
  ///
  /// - Parameter ended: is called even if the program cancels the queue's operations.
  private static func run(
    _ accessor: Handler<(any Error)?>, on queue: OperationQueue,
    _ body: @escaping @Sendable () -> Void, ended: (@Sendable () -> Void)? = nil
  ) {
    guard accessor.isolation.isNone || accessor.isolation.isMain else {
      return accessor.isolation.run {
        body()
        ended?()
      }
    }
    let operation = BlockOperation(block: body)
    operation.completionBlock = ended
    (accessor.isolation.isMain ? OperationQueue.main : queue).addOperation(operation)
  }

  /// Ends all waits in progress through this coordinator: they fail with `NSUserCancelledError`.
  open func cancel() { coordinator.cancel() }

  // MARK: Moves

  /// Announces a move in advance: here no process needs the announcement.
  open func item(at oldURL: URL, willMoveTo newURL: URL) {}

  /// Announces that an item was moved.
  ///
  /// From now on the presenters of the item, in this process or in others, present it at its new
  /// location, and they are notified.
  ///
  /// Call the function in the accessor of a write of both locations, with the URLs that the
  /// accessor received, or with the URLs of the original call. Elsewhere the function does nothing
  /// but log a warning.
  open func item(at oldURL: URL, didMoveTo newURL: URL) {
    let underWay = state.withLock { state in
      state.underWay.sorted { $0.key > $1.key }.map(\.value)
    }
    var failure = WormholeError(
      .refused, "report the move of", oldURL.path, because: "no accessor of this coordinator runs",
      hint: "report the move in the accessor of a write")
    for access in underWay {
      do throws(WormholeError) {
        return try access.moved(oldURL.path, to: newURL.path)
      } catch {
        failure = error
      }
    }
    DropInLog.tell(.warning, failure)
  }

  private func during(_ access: Coordinator.Access, _ body: () -> Void) {
    let number = state.withLock { state in
      state.begun += 1
      state.underWay[state.begun] = access
      return state.begun
    }
    body()
    state.withLock { $0.underWay[number] = nil }
  }

  // MARK: Running an accessor

  private func run(
    _ intents: [NSFileAccessIntent.WantedAccess], _ outError: NSErrorPointer,
    _ body: ([URL]) -> Void
  ) {
    let (coordinator, timeout, takeOver) = state.withLock {
      ($0.coordinator, $0.timeout, $0.takeOverAfter)
    }
    do {
      let call = coordinator.announce()
      try access(intents, by: coordinator, call, timeout, takeOver) { urls, access in
        guard let access else { return body(urls) }
        during(access) { body(urls) }
      }
    } catch {
      outError?.pointee = NSError.cocoa(error, of: intents)
    }
  }

  /// - Parameter body: receives no access if it uses only copies: other accesses continue in the
  ///   meantime.
  private func access(
    _ wanted: [NSFileAccessIntent.WantedAccess], by coordinator: Coordinator,
    _ call: Coordinator.AnnouncedCall, _ timeout: Duration?, _ takeOver: Duration?,
    _ body: ([URL], Coordinator.Access?) -> Void
  ) throws {
    var snapshots: [UploadSnapshot] = []
    defer { for snapshot in snapshots { snapshot.remove() } }
    let isAllCopied = !wanted.isEmpty && wanted.allSatisfy(\.isForUploading)
    let urls = try coordinator.access(
      wanted.map(\.intent), within: timeout, takeOverAfter: takeOver, announced: call
    ) { access in
      let urls = try zip(wanted, access.paths).map { wanted, path in
        guard wanted.isForUploading else { return URL(fileURLWithPath: path) }
        let snapshot = try UploadSnapshot(of: path)
        snapshots.append(snapshot)
        return snapshot.url
      }
      if !isAllCopied { body(urls, access) }
      return urls
    }
    if isAllCopied { body(urls, nil) }
  }
}
