import Foundation

// A file of the model, which imports no module of groups, as the slides have it: the suite's
// initialiser is found all the same.

struct Movie: Codable, Equatable {
  var id: Int
  var title: String
  var hour: Int
}

class CinemaSettings {
  static let groupName = "group.test.cinema"

  let group: String

  init(group: String = CinemaSettings.groupName) { self.group = group }

  private var defaults: UserDefaults { return UserDefaults(suiteName: group)! }

  var favourite: String? {
    get { return defaults.string(forKey: "favourite") }
    set {
      defaults.set(newValue, forKey: "favourite")
      defaults.synchronize()
    }
  }

  var rows: Int {
    get { return defaults.integer(forKey: "rows") }
    set { defaults.set(newValue, forKey: "rows") }
  }

  var ratings: [String: Int] {
    get { return defaults.dictionary(forKey: "ratings") as? [String: Int] ?? [:] }
    set { defaults.set(newValue, forKey: "ratings") }
  }

  var visited: [String] {
    get { return defaults.stringArray(forKey: "visited") ?? [] }
    set { defaults.set(newValue, forKey: "visited") }
  }

  var movies: [Movie] {
    get {
      guard let data = defaults.data(forKey: "movies") else { return [] }
      return (try? JSONDecoder().decode([Movie].self, from: data)) ?? []
    }
    set { defaults.set(try? JSONEncoder().encode(newValue), forKey: "movies") }
  }

  var lastVisit: Date? {
    get { return defaults.object(forKey: "last visit") as? Date }
    set { defaults.set(newValue, forKey: "last visit") }
  }

  func registerDefaults() {
    defaults.register(defaults: ["rows": 12, "sound": true])
  }

  var hasSound: Bool { return defaults.bool(forKey: "sound") }

  func reset() {
    let defaults = UserDefaults(suiteName: group)
    defaults?.removePersistentDomain(forName: group)
  }
}
