internal import DropIns
public import Foundation
internal import Syscalls
internal import Wormhole

/// Where a call leaves its error.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?

/// Lets programs take turns at files, as on devices; without their deadlock.
///
/// It is ``Wormhole/Wormhole/Coordinator`` under the names of Foundation's class. A call waits
/// until nobody else is in the way, runs the accessor on the calling thread, and returns. If it
/// fails before that the accessor is not called, and the error is set. A wait ends after
/// ``timeout``, and when whoever is in the way is stopped.
///
/// Those who present a file are asked before, and told afterwards: ``NSFilePresenter``.
open class NSFileCoordinator: NSObject, @unchecked Sendable {
  // What can change is in the monitor.
  private let state: Monitor<State>

  private struct State: Sendable {
    var coordinator: Wormhole.Coordinator
    /// That of the presenter that it was made with.
    var presenter: String?
    var timeout: Duration?
    var takeOverAfter: Duration?
    /// Those whose accessors run, with numbers of their own.
    var underWay: [Int: Wormhole.Coordinator.Access] = [:]
    var begun = 0
  }

  /// How a file is read.
  public struct ReadingOptions: OptionSet, Sendable {
    /// The number that devices have for it.
    public let rawValue: UInt
    /// The options of such a number.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Nobody is asked to save first.
    public static let withoutChanges = ReadingOptions(rawValue: 1 << 0)
    /// A link counts with what it leads to; here it always does.
    public static let resolvesSymbolicLink = ReadingOptions(rawValue: 1 << 1)
    /// What is known of the file at once is enough; here the file is there.
    public static let immediatelyAvailableMetadataOnly = ReadingOptions(rawValue: 1 << 2)
    /// The file is read to be sent elsewhere: the accessor gets a copy of it, which nobody changes
    /// and which is removed when the accessor has returned.
    ///
    /// If all that an accessor gets is copied, the others may go on meanwhile. A folder cannot be
    /// read so here: devices make an archive of it, and here the call fails with
    /// `NSFeatureUnsupportedError`.
    public static let forUploading = ReadingOptions(rawValue: 1 << 3)
  }

  /// How a file is written.
  public struct WritingOptions: OptionSet, Sendable {
    /// The number that devices have for it.
    public let rawValue: UInt
    /// The options of such a number.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// It is removed: those who present it are asked to let it go, and not to save it.
    public static let forDeleting = WritingOptions(rawValue: 1 << 0)
    /// It is moved: ``item(at:didMoveTo:)`` tells those who present it.
    public static let forMoving = WritingOptions(rawValue: 1 << 1)
    /// It is read as well.
    public static let forMerging = WritingOptions(rawValue: 1 << 2)
    /// Another takes its place: the accessor gets a place beside it, and what is made there is
    /// moved in when the accessor has returned.
    ///
    /// If nothing is made there the file stays as it is.
    public static let forReplacing = WritingOptions(rawValue: 1 << 3)
    /// Only what is known of the file is changed: nobody is asked or told.
    public static let contentIndependentMetadataOnly = WritingOptions(rawValue: 1 << 4)
  }

  /// A coordinator that is nobody's.
  public override init() {
    state = Monitor(State(coordinator: Wormhole.Coordinator()))
    super.init()
  }

  /// A coordinator of a presenter's.
  ///
  /// - Parameter filePresenter: is neither asked nor told of what this coordinator does; nil for
  ///   nobody's.
  public init(filePresenter: (any NSFilePresenter)?) {
    let presenter = filePresenter.map { FilePresenters.purpose(of: $0) }
    let coordinator = Wormhole.Coordinator(nil, presenter: presenter)
    state = Monitor(State(coordinator: coordinator, presenter: presenter))
    super.init()
  }

  // MARK: Presenters

  /// Has a presenter asked before others use what it presents, and told afterwards, until it is
  /// removed; it is kept as long.
  ///
  /// Where that is not possible the log says so.
  open class func addFilePresenter(_ filePresenter: any NSFilePresenter) {
    FilePresenters.add(filePresenter)
  }

  /// It is not asked or told any more; a call that is under way on another thread is waited for.
  open class func removeFilePresenter(_ filePresenter: any NSFilePresenter) {
    FilePresenters.remove(filePresenter)
  }

  /// All that this process has added.
  open class var filePresenters: [any NSFilePresenter] { FilePresenters.all }

  /// What it is used for: accesses of one purpose never wait for each other.
  ///
  /// By default one that nothing else has. Set it before the first access.
  open var purposeIdentifier: String {
    get { coordinator.purpose }
    set {
      state.withLock { state in
        state.coordinator = Wormhole.Coordinator(
          purpose: newValue, nil, presenter: state.presenter)
      }
    }
  }

  /// How long a call waits before it fails; 30 seconds by default, and ``takeOverAfter`` more.
  ///
  /// Devices have no such property, and wait for as long as it takes.
  public var timeout: Duration {
    get { state.withLock { Wormhole.Coordinator.timeout($0.timeout, $0.takeOverAfter) } }
    set { state.withLock { $0.timeout = newValue } }
  }

  /// How long a process must have stood still until its access is taken over; nil, the default:
  /// never, and a call fails that would have to wait for it.
  ///
  /// When that process goes on both may use the files.
  public var takeOverAfter: Duration? {
    get { state.withLock { $0.takeOverAfter } }
    set { state.withLock { $0.takeOverAfter = newValue } }
  }

  private var coordinator: Wormhole.Coordinator { state.withLock { $0.coordinator } }

  // MARK: Accesses

  /// Has the accessor read, while nobody writes there.
  open func coordinate(
    readingItemAt url: URL, options: ReadingOptions = [], error outError: NSErrorPointer,
    byAccessor reader: (URL) -> Void
  ) {
    run([NSFileAccessIntent.intent(url, options)], outError) { reader($0[0]) }
  }

  /// Has the accessor write, while nobody else uses the file.
  open func coordinate(
    writingItemAt url: URL, options: WritingOptions = [], error outError: NSErrorPointer,
    byAccessor writer: (URL) -> Void
  ) {
    run([NSFileAccessIntent.intent(url, options)], outError) { writer($0[0]) }
  }

  /// Has the accessor read one and write the other.
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

  /// Has the accessor write both.
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

  /// Gets all of them at once, and has the accessor use each through this coordinator.
  ///
  /// The accessor calls what it is given when it is done.
  open func prepare(
    forReadingItemsAt readingURLs: [URL], options readingOptions: ReadingOptions = [],
    writingItemsAt writingURLs: [URL], options writingOptions: WritingOptions = [],
    error outError: NSErrorPointer,
    byAccessor batchAccessor: (_ completionHandler: @escaping @Sendable () -> Void) -> Void
  ) {
    // What is replaced is replaced by the accesses inside of it, and copied by these.
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

  /// Gets all of them, without waiting here, and calls the accessor on the queue.
  ///
  /// The accessor finds the places to use in the intents. It gets an error, and nothing to use, if
  /// the wait has failed.
  open func coordinate(
    with intents: [NSFileAccessIntent], queue: OperationQueue,
    byAccessor accessor: @escaping @Sendable ((any Error)?) -> Void
  ) {
    let (coordinator, timeout, takeOver) = state.withLock {
      ($0.coordinator, $0.timeout, $0.takeOverAfter)
    }
    // So that what was asked for can be cancelled as soon as this has returned.
    let call = coordinator.announce()
    let wait: @Sendable () -> Void = { [self] in
      var isGiven = false
      do {
        let all = intents.map(\.wanted)
        try access(all, by: coordinator, call, timeout, takeOver) { urls, access in
          isGiven = true
          for (intent, url) in zip(intents, urls) { intent.use(url) }
          let isDone = Monitor(false)
          let operation = BlockOperation { [self] in
            guard let access else { return accessor(nil) }
            access.within { during(access) { accessor(nil) } }
          }
          // Also if somebody cancels what is in the queue.
          operation.completionBlock = { isDone.signal { $0 = true } }
          queue.addOperation(operation)
          isDone.wait(until: nil) { $0 ? () : nil }
        }
      } catch {
        // Once it has run there is nobody left to tell.
        guard !isGiven else { return DropInLog.tell(.error, error) }
        let error = NSError.cocoa(error, of: intents.map(\.wanted))
        queue.addOperation { accessor(error) }
      }
    }
    do throws(Errno) {
      try Syscalls.Thread("file-coordination", wait).detach()
    } catch {
      coordinator.forget(call)
      let error = NSError.cocoa(
        WormholeError(error, "coordinate", intents.first?.wanted.intent.path ?? ""),
        of: intents.map(\.wanted))
      queue.addOperation { accessor(error) }
    }
  }

  /// Ends all waits that are under way through this coordinator: they fail with
  /// `NSUserCancelledError`.
  open func cancel() { coordinator.cancel() }

  // MARK: Moves

  /// Something is about to be moved: here nobody has to know.
  open func item(at oldURL: URL, willMoveTo newURL: URL) {}

  /// Something was moved: those who present it, in this process or in others, present it at its new
  /// place from now on, and are told.
  ///
  /// Call it in the accessor of a write that has both, with the URLs that it was given, or with
  /// those that it was made with. Elsewhere it does nothing but log that.
  open func item(at oldURL: URL, didMoveTo newURL: URL) {
    let underWay = state.withLock { state in
      state.underWay.sorted { $0.key > $1.key }.map(\.value)
    }
    var failure = WormholeError(
      .refused, "tell of the move of", oldURL.path, because: "no accessor of this coordinator runs")
    for access in underWay {
      do throws(WormholeError) {
        return try access.moved(oldURL.path, to: newURL.path)
      } catch {
        failure = error
      }
    }
    DropInLog.tell(.warning, failure)
  }

  private func during(_ access: Wormhole.Coordinator.Access, _ body: () -> Void) {
    let number = state.withLock { state in
      state.begun += 1
      state.underWay[state.begun] = access
      return state.begun
    }
    body()
    state.withLock { $0.underWay[number] = nil }
  }

  // MARK: How an accessor is run

  private func run(
    _ intents: [NSFileAccessIntent.Wanted], _ outError: NSErrorPointer, _ body: ([URL]) -> Void
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

  /// - Parameter body: gets no access where it uses copies alone: others go on meanwhile.
  private func access(
    _ wanted: [NSFileAccessIntent.Wanted], by coordinator: Wormhole.Coordinator,
    _ call: Wormhole.Coordinator.AnnouncedCall, _ timeout: Duration?, _ takeOver: Duration?,
    _ body: ([URL], Wormhole.Coordinator.Access?) -> Void
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
