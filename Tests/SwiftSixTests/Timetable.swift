import AppGroups

// The slides' files and notifications, as a developer writes them who begins in Swift 6: on the
// main actor, with values that may be sent.

@MainActor
final class Timetable {
  private(set) var movies: [Movie] = []
  private(set) var error: String?
  private var observation: AnyCancellable?
  private let group: String
  private let changed: DarwinNotification

  init(group: String) {
    self.group = group
    changed = DarwinNotification("\(group).timetable")
  }

  private var url: URL? {
    FileManager.default
      .containerURL(forSecurityApplicationGroupIdentifier: group)?
      .appendingPathComponent("timetable.plist")
  }

  func follow(_ change: @escaping @Sendable () -> Void) throws {
    observation = try changed.observe(on: .global()) { change() }
  }

  func unfollow() {
    observation?.cancel()
    observation = nil
  }

  func load() {
    guard let url, let data = try? Data(contentsOf: url) else {
      error = "no timetable"
      return
    }
    do {
      movies = try PropertyListDecoder().decode([Movie].self, from: data)
      error = nil
    } catch {
      self.error = "\(error)"
    }
  }

  func save(_ movies: [Movie]) throws {
    guard let url else { return }
    try PropertyListEncoder().encode(movies).write(to: url, options: .atomic)
    try changed.post()
  }

  func ask() {
    WKInterfaceController.openParentApplication(["request": "timetable"]) { reply, error in
      let titles = reply["titles"] as? [String] ?? []
      let words = error.map { "\($0)" }
      Task { @MainActor in
        self.movies = titles.enumerated().map { Movie(id: $0, title: $1, hour: 20) }
        self.error = words
      }
    }
  }
}

@MainActor
final class Desk: UIApplicationDelegate {
  let titles: [String]

  init(titles: [String]) { self.titles = titles }

  nonisolated func application(
    _ application: UIApplication, handleWatchKitExtensionRequest userInfo: [AnyHashable: Any]?,
    reply: @escaping @Sendable ([AnyHashable: Any]?) -> Void
  ) {
    let isKnown = userInfo?["request"] as? String == "timetable"
    Task { @MainActor in
      reply(isKnown ? ["titles": titles] : nil)
    }
  }
}

@MainActor
final class MovieList: ObservableObject {
  @Published var movies: [Movie] = []
  @Published private(set) var count = 0
  private var cancellables: Set<AnyCancellable> = []

  init() {
    $movies.dropFirst().map { $0.count }.sink { [weak self] count in
      self?.count = count
    }.store(in: &cancellables)
  }
}
