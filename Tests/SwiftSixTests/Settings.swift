import Foundation

// A file that imports no module of groups: the suite's initialiser is found all the same.

struct Movie: Codable, Hashable, Sendable, Identifiable {
  let id: Int
  var title: String
  var hour: Int
}

@propertyWrapper
struct Shared<Value> {
  let key: String
  let suite: String
  let fallback: Value

  var wrappedValue: Value {
    get { UserDefaults(suiteName: suite)?.object(forKey: key) as? Value ?? fallback }
    nonmutating set { UserDefaults(suiteName: suite)?.set(newValue, forKey: key) }
  }
}

struct Settings: Sendable {
  let group: String

  var volume: Int {
    get { Shared(key: "volume", suite: group, fallback: 5).wrappedValue }
    nonmutating set { Shared(key: "volume", suite: group, fallback: 5).wrappedValue = newValue }
  }

  var name: String {
    get { Shared(key: "name", suite: group, fallback: "nobody").wrappedValue }
    nonmutating set {
      Shared(key: "name", suite: group, fallback: "nobody").wrappedValue = newValue
    }
  }

  var favourites: Set<Int> {
    get { Set(UserDefaults(suiteName: group)?.array(forKey: "favourites") as? [Int] ?? []) }
    nonmutating set {
      UserDefaults(suiteName: group)?.set(newValue.sorted(), forKey: "favourites")
    }
  }

  func movies() throws -> [Movie] {
    guard let data = UserDefaults(suiteName: group)?.data(forKey: "movies") else { return [] }
    return try PropertyListDecoder().decode([Movie].self, from: data)
  }

  func save(_ movies: [Movie]) throws {
    UserDefaults(suiteName: group)?.set(try PropertyListEncoder().encode(movies), forKey: "movies")
  }
}
