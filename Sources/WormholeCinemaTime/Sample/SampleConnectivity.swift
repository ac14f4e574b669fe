public import Foundation
public import WatchConnectivity
internal import WormholeSyscalls

/// The messages between the two sides as in the published sample: to learn from, and not to copy.
///
/// The class corresponds to ``Connectivity``, does the same with `WCSession`, and loses data in the
/// same places as the sample. A comment marks each of these places.
public final class SampleConnectivity: NSObject, WCSessionDelegate, Sendable {
  /// The images of this side.
  public let album: Album
  private let session: WCSession
  private let role: Role
  private let state = Monitor(State())

  private struct State: Sendable {
    var listener: (@Sendable ([Movie.ID]) -> Void)?
    var images: (@Sendable () -> Void)?
    var failures: [String] = []
  }

  /// Becomes the delegate of a session, and activates the session.
  public init(_ session: WCSession, as role: Role, beside container: String) {
    self.session = session
    self.role = role
    album = Album(of: role, beside: container)
    super.init()
    session.delegate = self
    session.activate()
  }

  /// Receives each list that arrives from now on.
  ///
  /// Loss 2: a list that arrives before a listener is set is dropped.
  public func listen(_ listener: @escaping @Sendable ([Movie.ID]) -> Void) {
    state.withLock { $0.listener = listener }
  }

  /// Receives a notice of each image that has arrived.
  public func listenToImages(_ listener: @escaping @Sendable () -> Void) {
    state.withLock { $0.images = listener }
  }

  /// The failures so far, at most the latest 100.
  public var failures: [String] { state.withLock { $0.failures } }

  /// Sends a payload to the other side.
  ///
  /// Loss 3: before the session is active nothing is sent, and nothing is sent later either.
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
        // Loss 4: a context that equals the previous one is not delivered.
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

  // MARK: Receiving

  private func take(_ content: [String: Any]) {
    if role == .phone, let movies = content["qrCodes"] as? [Int] {
      for movie in movies { sendImage(of: movie) }
    }
    guard let purchased = content["purchased"] as? [Int] else { return }
    state.withLock { $0.listener }?(purchased)
  }

  /// The directory of images that are made for sending.
  public var temporaryPath: String { album.path + ".temporary" }

  private func sendImage(of movie: Movie.ID) {
    guard let movie = Movie.find(movie) else { return }
    do {
      try FileManager.default.createDirectory(
        atPath: temporaryPath, withIntermediateDirectories: true)
      // Loss 7: each image is a new file, which is never removed.
      let place = URL(fileURLWithPath: "\(temporaryPath)/\(UUID().uuidString).png")
      try Data(movie.ticketImage().bytes).write(to: place)
      session.transferFile(place, metadata: ["qrCodes": movie.id])
    } catch {
      note(error)
    }
  }

  /// Records an error of the activation; does nothing if the session is active.
  public func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    if let error { note(error) }
  }

  /// Takes a list, and on the phone the watch's request for images.
  public func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) {
    take(applicationContext)
  }

  /// Takes a user info in the same manner as a context.
  public func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any] = [:]) {
    take(userInfo)
  }

  /// Takes a message in the same manner as a context, and replies that it has arrived.
  public func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void
  ) {
    take(message)
    replyHandler(["verified": true])
  }

  /// Stores an image that has arrived.
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
