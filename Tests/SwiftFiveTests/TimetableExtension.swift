import AppGroups
import Foundation

// The extension's side of the slides: a file in the group's directory that the app makes, and a
// notification of each new file.

let timetableChanged = "com.example.cinema.timetable" as CFString

class TimetableStore: NSObject {
  let fileManager = FileManager.default
  let group: String

  init(group: String) {
    self.group = group
    super.init()
  }

  lazy var containerURL: URL? = {
    return self.fileManager.containerURL(forSecurityApplicationGroupIdentifier: self.group)
  }()

  var fileURL: URL? {
    return containerURL?.appendingPathComponent("timetable.json")
  }

  func save(_ movies: [Movie]) throws {
    guard let url = fileURL else { return }
    let data = try JSONEncoder().encode(movies)
    try data.write(to: url, options: .atomic)
    CFNotificationCenterPostNotification(
      CFNotificationCenterGetDarwinNotifyCenter(), CFNotificationName(timetableChanged), nil, nil,
      true)
  }

  func load() -> [Movie]? {
    guard let url = fileURL, let data = try? Data(contentsOf: url) else { return nil }
    return try? JSONDecoder().decode([Movie].self, from: data)
  }

  func loadDictionary() -> [String: Any]? {
    guard let url = fileURL, let data = try? Data(contentsOf: url) else { return nil }
    let object = try? JSONSerialization.jsonObject(with: data, options: [])
    guard let list = object as? [[String: Any]] else { return nil }
    return ["movies": list]
  }
}

protocol TimetableObserverDelegate: AnyObject {
  func timetableDidChange(_ observer: TimetableObserver)
}

class TimetableObserver {
  weak var delegate: TimetableObserverDelegate?
  private(set) var count = 0

  func start() {
    let pointer = Unmanaged.passUnretained(self).toOpaque()
    CFNotificationCenterAddObserver(
      CFNotificationCenterGetDarwinNotifyCenter(), pointer,
      { _, observer, name, _, _ in
        guard let observer = observer, name?.rawValue == timetableChanged else { return }
        let me = Unmanaged<TimetableObserver>.fromOpaque(observer).takeUnretainedValue()
        me.changed()
      }, timetableChanged, nil, .deliverImmediately)
  }

  func stop() {
    CFNotificationCenterRemoveEveryObserver(
      CFNotificationCenterGetDarwinNotifyCenter(), Unmanaged.passUnretained(self).toOpaque())
  }

  private func changed() {
    count += 1
    delegate?.timetableDidChange(self)
  }

  deinit { stop() }
}

class InterfaceController: WKInterfaceController, TimetableObserverDelegate {
  let store: TimetableStore
  let observer = TimetableObserver()
  var shown: [String] = []

  init(store: TimetableStore) {
    self.store = store
    super.init()
    observer.delegate = self
  }

  func willActivate() {
    observer.start()
    showTimetable()
  }

  func didDeactivate() { observer.stop() }

  func timetableDidChange(_ observer: TimetableObserver) { showTimetable() }

  func showTimetable() {
    if let movies = store.load() {
      shown = movies.sorted { $0.title < $1.title }.map { "\($0.title) at \($0.hour)" }
      return
    }
    WKInterfaceController.openParentApplication(["request": "timetable"]) {
      [weak self] reply, error in
      if let error = error {
        NSLog("no timetable: \(error)")
        return
      }
      guard let titles = reply["titles"] as? [String] else { return }
      self?.shown = titles
    }
  }
}

class AppDelegate: NSObject, UIApplicationDelegate {
  var requests = 0

  func application(
    _ application: UIApplication,
    handleWatchKitExtensionRequest userInfo: [AnyHashable: Any]?,
    reply: @escaping ([AnyHashable: Any]?) -> Void
  ) {
    requests += 1
    guard let request = userInfo?["request"] as? String, request == "timetable" else {
      reply(nil)
      return
    }
    reply(["titles": ["Metropolis", "Sunrise"], "count": 2, "made": Date()])
  }
}
