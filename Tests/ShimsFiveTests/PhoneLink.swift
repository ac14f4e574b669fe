import Combine
import Foundation
import WatchConnectivity
import WatchKit
import os

/// The connectivity layer of an app, as apps for phone and watch have it.
final class PhoneLink: NSObject, ObservableObject {
  struct Workout: Equatable, Sendable {
    var title: String
    var minutes: Int
  }

  enum LinkError: Error, Equatable {
    case unreachable
    case refused(String)
  }

  @Published private(set) var isReachable = false
  @Published private(set) var workouts: [Workout] = []
  @Published var searchText = ""
  @Published private(set) var results: [Workout] = []
  @Published private(set) var summary = ""

  let received = PassthroughSubject<[String: Any], Never>()
  let activation = CurrentValueSubject<WCSessionActivationState, Never>(.notActivated)
  let progress = PassthroughSubject<Int, LinkError>()

  private let logger = Logger(subsystem: "com.example.workouts", category: "link")
  private let tasks = OSAllocatedUnfairLock(
    initialState: [WKWatchConnectivityRefreshBackgroundTask]())
  private var cancellables = Set<AnyCancellable>()

  override init() {
    super.init()
    received
      .compactMap { $0["workout"] as? String }
      .removeDuplicates()
      .map { Workout(title: $0, minutes: 30) }
      .scan([]) { $0 + [$1] }
      .assign(to: &$workouts)
    $searchText
      .debounce(for: .milliseconds(20), scheduler: DispatchQueue.main)
      .combineLatest($workouts)
      .map { text, workouts in
        text.isEmpty ? workouts : workouts.filter { $0.title.contains(text) }
      }
      .receive(on: RunLoop.main)
      .sink { [weak self] in self?.results = $0 }
      .store(in: &cancellables)
    activation
      .combineLatest($isReachable, $workouts) { "\($0.rawValue) \($1) \($2.count)" }
      .assign(to: \.summary, on: self)
      .store(in: &cancellables)
    NotificationCenter.default.publisher(for: .workoutsChanged, object: self)
      .compactMap { $0.userInfo?["title"] as? String }
      .sink { [weak self] title in
        self?.logger.info("changed: \(title, privacy: .public), \(title.count) letters")
        self?.received.send(["workout": title])
      }
      .store(in: &cancellables)
  }

  func stop() { cancellables.removeAll() }

  /// The first progress of a transfer, or the reason why there is none.
  func firstProgress() -> AnyPublisher<Int, Error> {
    guard activation.value == .activated else {
      return Fail(error: LinkError.unreachable).eraseToAnyPublisher()
    }
    return
      progress
      .filter { $0 > 0 }
      .first()
      .mapError { $0 as Error }
      .eraseToAnyPublisher()
  }

  /// The reply of the counterpart, or the text of the failure.
  func ask(
    _ request: @escaping (@escaping (Result<String, LinkError>) -> Void) -> Void
  ) -> AnyPublisher<String, Never> {
    Future<String, LinkError> { promise in request(promise) }
      .map { $0.uppercased() }
      .catch { error in Just("failed: \(error)") }
      .eraseToAnyPublisher()
  }

  func keep(_ task: WKWatchConnectivityRefreshBackgroundTask) {
    tasks.withLock { $0.append(task) }
  }

  func completeTasks() {
    let waiting = tasks.withLock { tasks in
      defer { tasks = [] }
      return tasks
    }
    logger.debug("completes \(waiting.count) tasks")
    waiting.forEach { $0.setTaskCompletedWithSnapshot(false) }
  }
}

extension PhoneLink: WCSessionDelegate {
  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: Error?
  ) {
    if let error {
      logger.error("cannot activate: \(error.localizedDescription, privacy: .private)")
    }
    activation.send(activationState)
  }

  func sessionReachabilityDidChange(_ session: WCSession) {
    isReachable = session.isReachable
  }

  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    received.send(userInfo)
    if !session.hasContentPending { completeTasks() }
  }
}

extension Notification.Name {
  static let workoutsChanged = Notification.Name("workoutsChanged")
}

final class ExtensionDelegate: NSObject, WKExtensionDelegate {
  let link = PhoneLink()

  func applicationDidFinishLaunching() {
    WCSession.default.delegate = link
    WKInterfaceDevice.current().play(.success)
  }

  func handle(_ backgroundTasks: Set<WKRefreshBackgroundTask>) {
    for task in backgroundTasks {
      switch task {
      case let task as WKWatchConnectivityRefreshBackgroundTask: link.keep(task)
      default: task.setTaskCompletedWithSnapshot(false)
      }
    }
  }
}

/// A delegate that relies on the defaults.
final class PlainDelegate: NSObject, WKApplicationDelegate {
  private(set) var isActive = false
  func applicationDidBecomeActive() { isActive = true }
}
