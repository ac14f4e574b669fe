public import Foundation
internal import Synchronization
public import WatchConnectivity

/// What one side tells the other, as the published sample does it: to learn from, and not to copy.
///
/// It stands beside ``Connectivity``, does the same with `WCSession`, and loses data where the
/// sample does. Each of these places says so.
public final class SampleConnectivity: NSObject, WCSessionDelegate, Sendable {
  /// The images that this side has.
  public let album: Album
  private let session: WCSession
  private let role: Role
  private let state = Mutex(State())

  private struct State: Sendable {
    var listener: (@Sendable ([Movie.ID]) -> Void)?
    var images: (@Sendable () -> Void)?
    var failures: [String] = []
  }

  /// Takes a session over, and activates it.
  public init(_ session: WCSession, as role: Role, beside container: String) {
    self.session = session
    self.role = role
    album = Album(of: role, beside: container)
    super.init()
    session.delegate = self
    session.activate()
  }

  /// Hears of each list that comes from now on.
  ///
  /// Loss 2: what came before somebody listens is dropped.
  public func listen(_ listener: @escaping @Sendable ([Movie.ID]) -> Void) {
    state.withLock { $0.listener = listener }
  }

  /// Hears of images that have come.
  public func listenToImages(_ listener: @escaping @Sendable () -> Void) {
    state.withLock { $0.images = listener }
  }

  /// What has failed so far.
  public var failures: [String] { state.withLock { $0.failures } }

  /// Tells the other side something.
  ///
  /// Loss 3: before the session is active nothing is sent, and nobody sends it later.
  public func send(_ payload: Payload, by delivery: Delivery) {
    guard session.activationState == .activated else { return }
    var content: [String: Any] = [:]
    content["purchased"] = payload.purchased
    content["qrCodes"] = payload.qrCodes
    switch delivery {
    case .failable:
      session.sendMessage(
        content, replyHandler: { _ in },
        errorHandler: { [weak self] error in
          self?.note(error)
        })
    case .guaranteed:
      session.transferUserInfo(content)
    case .highPriority:
      do {
        // Loss 4: the same once more is not delivered.
        try session.updateApplicationContext(content)
      } catch {
        note(error)
      }
    }
  }

  private func note(_ error: any Error) {
    state.withLock { state in
      state.failures.append("\(error)")
      state.failures.removeFirst(max(0, state.failures.count - 100))
    }
  }

  // MARK: What comes

  private func take(_ content: [String: Any]) {
    if role == .phone, let movies = content["qrCodes"] as? [Int] {
      for movie in movies { sendImage(of: movie) }
    }
    guard let purchased = content["purchased"] as? [Int] else { return }
    state.withLock { $0.listener }?(purchased)
  }

  /// Where images are made that are to be sent.
  public var temporaryPath: String { album.path + ".temporary" }

  private func sendImage(of movie: Movie.ID) {
    guard let movie = Movie.find(movie) else { return }
    do {
      try FileManager.default.createDirectory(
        atPath: temporaryPath, withIntermediateDirectories: true)
      // Loss 7: each image is a file of its own, and nobody removes it.
      let place = URL(fileURLWithPath: "\(temporaryPath)/\(UUID().uuidString).png")
      try Data(movie.ticketImage().bytes).write(to: place)
      session.transferFile(place, metadata: ["qrCodes": movie.id])
    } catch {
      note(error)
    }
  }

  /// Nothing is done when the session is active.
  public func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    if let error { note(error) }
  }

  /// A list, and on the phone what the watch asks for.
  public func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) {
    take(applicationContext)
  }

  /// As a context.
  public func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any] = [:]) {
    take(userInfo)
  }

  /// As a context, and it is verified.
  public func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void
  ) {
    take(message)
    replyHandler(["verified": true])
  }

  /// An image, which is kept.
  public func session(_ session: WCSession, didReceive file: WCSessionFile) {
    guard let movie = file.metadata?["qrCodes"] as? Int else { return }
    do {
      try album.prepare()
      try album.remove(movie)
      try FileManager.default.moveItem(atPath: file.fileURL.path, toPath: album.path(of: movie))
      state.withLock { $0.images }?()
    } catch {
      note(error)
    }
  }
}
