import AppGroups
import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// `UserDefaults(suiteName:)` for groups.
@Suite struct GroupDefaultsTests {
  private let group: String
  private let defaults: UserDefaults

  init() throws {
    try GroupsRoot.use()
    group = "group.test.\(UUID().uuidString)"
    defaults = try #require(UserDefaults(suiteName: group))
  }

  /// The same settings, as a second part of the program sees them.
  private var again: UserDefaults { UserDefaults(suiteName: group)! }

  private func peer(_ arguments: [String], within time: Duration = patience) throws
    -> ProcessOutcome
  {
    try run(
      Programs.built("DropInPeer"), arguments, environment: [GroupsRoot.setting], within: time)
  }

  /// A program that takes a refused read for a missing value may count on from nothing, and set the
  /// result.
  @Test(.blocking) func valuesAreSetAndReadByKey() throws {
    let group = "group.test.\(UUID().uuidString)"
    let defaults = try #require(UserDefaults(suiteName: group))
    defaults.setValue(7, forKey: "rows by key")
    defaults.setValue(["a", "b"], forKey: "names")
    #expect(defaults.value(forKey: "rows by key") as? Int == 7)
    #expect(UserDefaults(suiteName: group)?.value(forKey: "names") as? [String] == ["a", "b"])
    defaults.setValue(nil, forKey: "rows by key")
    #expect(defaults.value(forKey: "rows by key") == nil)
  }

  @Test(.blocking) func whatIsRefusedForAMomentIsReadAndSetAllTheSame() throws {
    defaults.set(5, forKey: "n")
    let refused = (1...3).map { number in
      FaultRule(nil, path: group, number: number, .fail(.tooManyOpenFiles))
    }
    FaultPoints.with(refused) { #expect(defaults.integer(forKey: "n") == 5) }
    FaultPoints.with(refused) { defaults.set(6, forKey: "n") }
    #expect(again.integer(forKey: "n") == 6)
  }

  /// Programs unwrap the result with `!`.
  @Test(.blocking) func settingsThatAreRefusedForAMomentAreOpenedAllTheSame() throws {
    defaults.set(5, forKey: "n")
    // The look at the container's name, and the first step to a new one.
    let refused = (1...2).map { number in
      FaultRule(nil, path: group, number: number, .fail(.tooManyOpenFiles))
    }
    var opened: UserDefaults?
    FaultPoints.with(refused) { opened = UserDefaults(suiteName: group) }
    #expect(opened?.integer(forKey: "n") == 5)
  }

  /// The program receives no error, and does not open the settings again.
  @Test(.blocking) func aWatchThatTheSystemRefusesIsRetried() throws {
    let group = "group.test.\(UUID().uuidString)"
    // The container is open when the system refuses the watch.
    _ = UserDefaults(suiteName: group)
    var opened: UserDefaults?
    let rule = FaultRule(.duplicate, persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) { opened = UserDefaults(suiteName: group) }
    let object = try #require(opened)
    let observed = Heard<Int>()
    let (center, name) = (NotificationCenter.default, UserDefaults.didChangeNotification)
    let observer = center.addObserver(forName: name, object: object, queue: nil) { _ in
      observed.add(1)
    }
    defer { center.removeObserver(observer) }
    let other = try #require(UserDefaults(suiteName: group))
    var number = 0
    try eventually("the object observes") {
      number += 1
      other.set(number, forKey: "n")
      return observed.count > 0
    }
    let before = observed.count
    other.set(0, forKey: "n")
    try observed.wait("the next change") { $0.count > before }
  }

  /// The calls on the file of the settings.
  ///
  /// The directory is opened again if the slots of other tests have closed it.
  private func callsOnTheFile(_ body: () -> Void) -> [Substring] {
    FaultPoints.with([], body).filter { $0.hasSuffix("/value.plist") }
      .map { $0.prefix { $0 != " " } }
  }

  /// As long as nothing has changed, a look at the file's name is all.
  @Test(.blocking) func anUnchangedFileIsNotReadAgain() throws {
    defaults.set(5, forKey: "n")
    #expect(defaults.integer(forKey: "n") == 5)
    let calls = callsOnTheFile { #expect(defaults.integer(forKey: "n") == 5) }
    #expect(calls == ["fstatat"])
    for number in 6...8 {
      again.set(number, forKey: "n")
      #expect(defaults.integer(forKey: "n") == number)
    }
  }

  /// The object knows the values of a file that it has written itself.
  @Test(.blocking) func aFileOfTheObjectsOwnIsNotRead() throws {
    for number in 5...7 {
      // The second set changes nothing.
      for _ in 1...2 { defaults.set(number, forKey: "n") }
      let calls = callsOnTheFile { #expect(defaults.integer(forKey: "n") == number) }
      #expect(calls == ["fstatat"])
      again.set(-number, forKey: "n")
      #expect(defaults.integer(forKey: "n") == -number)
    }
  }

  /// A program removes the directory of the group, as tests do.
  @Test(.blocking) func theSettingsContinueInTheNextContainer() throws {
    let observed = Heard<Int>()
    let (center, name) = (NotificationCenter.default, UserDefaults.didChangeNotification)
    let observer = center.addObserver(forName: name, object: defaults, queue: nil) { _ in
      observed.add(1)
    }
    defer { center.removeObserver(observer) }
    defaults.set(5, forKey: "n")
    let directory = try #require(
      FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group))
    try removeTree(directory.path)
    // The watch has not reported the removal yet.
    defaults.set(6, forKey: "n")
    #expect(again.integer(forKey: "n") == 6)
    let before = observed.count
    again.set(7, forKey: "n")
    #expect(defaults.integer(forKey: "n") == 7)
    try observed.wait("the change by another object") { $0.count > before }
  }

  /// The removal of the directory would fail if a read made the container again in the middle.
  @Test(.blocking) func aReadDuringTheRemovalMakesNoContainer() throws {
    defaults.set(5, forKey: "n")
    let manager = FileManager.default
    let directory = try #require(
      manager.containerURL(forSecurityApplicationGroupIdentifier: group))
    func look(for time: Duration) throws {
      let end = Instant.now + time
      try eventually("a while passes") {
        _ = defaults.integer(forKey: "n")
        return Instant.now > end
      }
    }
    // The container ends with this file, and its directory is removed later.
    try manager.removeItem(
      at: directory.appendingPathComponent(".wormhole/container.plist"))
    try look(for: .milliseconds(500))
    try removeTree(directory.path)
    try look(for: .seconds(2))
    #expect(!manager.fileExists(atPath: directory.path))
    #expect(defaults.integer(forKey: "n") == 0)
    again.set(7, forKey: "n")
    try eventually("the object continues") { defaults.integer(forKey: "n") == 7 }
  }

  @Test(.blocking) func everyTypeComesBackAsItWasSet() throws {
    defaults.set("text", forKey: "text")
    defaults.set(7, forKey: "int")
    defaults.set(Float(1.5), forKey: "float")
    defaults.set(2.5, forKey: "double")
    defaults.set(CGFloat(2.5), forKey: "size")
    defaults.set(true, forKey: "bool")
    defaults.set(Data([1, 2]), forKey: "data")
    defaults.set(Date(timeIntervalSince1970: 5), forKey: "date")
    defaults.set([1, 2], forKey: "array")
    defaults.set(["a", "b"], forKey: "texts")
    defaults.set(["a": 1], forKey: "dictionary")
    defaults.set(URL(fileURLWithPath: "/tmp/b c"), forKey: "file")
    defaults.set(URL(string: "news:swift")!, forKey: "url")
    let read = again
    #expect(read.string(forKey: "text") == "text")
    #expect(read.integer(forKey: "int") == 7)
    #expect(read.object(forKey: "int") as? Int == 7)
    #expect(read.float(forKey: "float") == 1.5)
    #expect(read.double(forKey: "double") == 2.5)
    #expect(read.double(forKey: "size") == 2.5)
    #expect(read.object(forKey: "size") as? CGFloat == 2.5)
    #expect(read.bool(forKey: "bool"))
    #expect(read.data(forKey: "data") == Data([1, 2]))
    #expect(read.object(forKey: "date") as? Date == Date(timeIntervalSince1970: 5))
    #expect(read.array(forKey: "array") as? [Int] == [1, 2])
    #expect(read.stringArray(forKey: "texts") == ["a", "b"])
    #expect(read.stringArray(forKey: "array") == nil)
    #expect(read.dictionary(forKey: "dictionary") as? [String: Int] == ["a": 1])
    #expect(read.url(forKey: "file")?.path == "/tmp/b c")
    #expect(read.url(forKey: "url")?.absoluteString == "news:swift")
  }

  @Test(.blocking) func typesAreTurnedIntoEachOtherAsFoundationDoes() throws {
    defaults.set("12 seats", forKey: "number in text")
    defaults.set("YES", forKey: "truth in text")
    defaults.set(2.9, forKey: "real")
    defaults.set(3, forKey: "int")
    defaults.set(true, forKey: "truth")
    #expect(defaults.integer(forKey: "number in text") == 12)
    #expect(defaults.double(forKey: "number in text") == 12)
    #expect(defaults.bool(forKey: "truth in text"))
    #expect(defaults.integer(forKey: "real") == 2)
    #expect(defaults.string(forKey: "int") == "3")
    #expect(defaults.bool(forKey: "int"))
    #expect(defaults.integer(forKey: "truth") == 1)
    for (text, isTrue) in [
      ("true", true), ("Yes", true), ("y", true), ("1", true), ("no", false), ("0", false),
      ("", false), ("off", false),
    ] {
      defaults.set(text, forKey: "text")
      #expect(defaults.bool(forKey: "text") == isTrue, "'\(text)'")
    }
    // Towards zero, as C does.
    for (real, whole) in [(-2.9, -2), (2.9, 2), (-0.5, 0)] {
      defaults.set(real, forKey: "real")
      #expect(defaults.integer(forKey: "real") == whole, "\(real)")
    }
    for key in ["missing", "truth"] { #expect(defaults.array(forKey: key) == nil) }
    #expect(defaults.integer(forKey: "missing") == 0)
    #expect(defaults.object(forKey: "missing") == nil)
    #expect(defaults.url(forKey: "missing") == nil)
  }

  @Test(.blocking) func nilAndRemovingTakeAway() throws {
    defaults.set(1, forKey: "a")
    defaults.set(2, forKey: "b")
    defaults.set(nil, forKey: "a")
    defaults.removeObject(forKey: "b")
    #expect(again.object(forKey: "a") == nil)
    #expect(again.object(forKey: "b") == nil)
  }

  @Test(.blocking) func whatIsRegisteredStandsInAndIsNotStored() throws {
    let key = "registered \(group)"
    defaults.register(defaults: [key: 5])
    #expect(again.integer(forKey: key) == 5)
    #expect(again.dictionaryRepresentation()[key] as? Int == 5)
    #expect(again.persistentDomain(forName: group)?[key] == nil)
    defaults.set(6, forKey: key)
    #expect(again.integer(forKey: key) == 6)
    defaults.removeObject(forKey: key)
    #expect(again.integer(forKey: key) == 5)
  }

  @Test(.blocking) func theDomainIsSetAndRemovedAsAWhole() throws {
    defaults.set(1, forKey: "a")
    #expect(defaults.persistentDomain(forName: group) as? [String: Int] == ["a": 1])
    defaults.setPersistentDomain(["b": 2], forName: group)
    #expect(again.object(forKey: "a") == nil)
    #expect(again.integer(forKey: "b") == 2)
    // An equal value is no change.
    let heard = Heard<String>()
    let observer = NotificationCenter.default.addObserver(
      forName: UserDefaults.didChangeNotification, object: defaults, queue: nil
    ) { _ in heard.add("changed") }
    defer { NotificationCenter.default.removeObserver(observer) }
    defaults.setPersistentDomain(["b": 2], forName: group)
    #expect(heard.count == 0)
    defaults.setPersistentDomain(["b": 3], forName: group)
    #expect(heard.count == 1)
    defaults.removePersistentDomain(forName: group)
    #expect(again.persistentDomain(forName: group) == nil)
  }

  /// The other domains are Foundation's suites, which lie below the home.
  @Test(.blocking) func removingAnotherDomainKeepsTheSettings() throws {
    let home = try TemporaryDirectory()
    let homes = ["HOME", "CFFIXED_USER_HOME", "XDG_CONFIG_HOME"].map { "\($0)=\(home.path)" }
    let environment = try homes + [GroupsRoot.setting]
    func remove(_ name: String) throws {
      let outcome = try run(
        Programs.built("DropInPeer"), ["remove-domain", group, name], environment: environment)
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
    }
    defaults.set(1, forKey: "a")
    for name in ["suite", "\(group).2"] {
      try remove(name)
      #expect(again.persistentDomain(forName: group) as? [String: Int] == ["a": 1], "\(name)")
    }
    try remove(group)
    #expect(again.persistentDomain(forName: group) == nil)
  }

  /// Also where none of the set values is left.
  @Test(.blocking, arguments: [false, true])
  func aDamagedDomainIsSetAndRemoved(isSet: Bool) throws {
    defaults.set(1, forKey: "a")
    let suites = try URL(fileURLWithPath: SharedContainer(group: group).directory + "/system")
    let files = try FileManager.default.contentsOfDirectory(
      at: suites, includingPropertiesForKeys: nil
    ).filter { $0.lastPathComponent.contains(group) }
    let file = try #require(files.first).appendingPathComponent("value.plist")
    try FileManager.default.removeItem(at: file)
    try Data("no property list".utf8).write(to: file)
    #expect(defaults.object(forKey: "a") == nil)
    let error = #expect(throws: WormholeError.self) {
      try SharedContainer(group: group).defaults(group).set(2, forKey: "a")
    }
    #expect(error?.hint?.contains("removeAll()") == true)
    let heard = Heard<String>()
    let observer = NotificationCenter.default.addObserver(
      forName: UserDefaults.didChangeNotification, object: defaults, queue: nil
    ) { _ in heard.add("changed") }
    defer { NotificationCenter.default.removeObserver(observer) }
    if isSet {
      defaults.setPersistentDomain(["b": 2], forName: group)
      #expect(again.integer(forKey: "b") == 2)
    } else {
      defaults.removePersistentDomain(forName: group)
    }
    #expect(heard.count == 1)
    defaults.set(3, forKey: "c")
    #expect(again.integer(forKey: "c") == 3)
  }

  @Test(.blocking) func argumentsComeFirst() throws {
    defaults.set(6, forKey: "seats")
    #expect(try peer(["integer", group, "seats"]).output == "6")
    #expect(try peer(["integer", group, "seats", "-seats", "5"]).output == "5")
    let mine = again
    mine.setVolatileDomain(["seats": 4], forName: UserDefaults.argumentDomain)
    #expect(mine.integer(forKey: "seats") == 4)
    #expect(mine.dictionaryRepresentation()["seats"] as? Int == 4)
    #expect(mine.persistentDomain(forName: group) as? [String: Int] == ["seats": 6])
    #expect(defaults.integer(forKey: "seats") == 6)
  }

  /// The order of `object(forKey:)`: arguments, stored values, registered values.
  @Test(.blocking) func dictionaryRepresentationHasTheValueOfEachKey() throws {
    let keys = ["argument", "stored", "registered"].map { "\($0) \(group)" }
    defaults.register(defaults: Dictionary(uniqueKeysWithValues: keys.map { ($0, 1) }))
    for key in keys.prefix(2) { defaults.set(2, forKey: key) }
    let mine = again
    mine.setVolatileDomain([keys[0]: 3], forName: UserDefaults.argumentDomain)
    let all = mine.dictionaryRepresentation()
    #expect(keys.map { all[$0] as? Int } == [3, 2, 1])
    #expect(keys.map { mine.integer(forKey: $0) } == [3, 2, 1])
    #expect(keys.map { mine.persistentDomain(forName: group)?[$0] as? Int } == [2, 2, nil])
  }

  @Test(.blocking) func changesAreToldOnceEachAlsoThoseOfOtherProcesses() throws {
    let heard = Heard<String>()
    let watched = defaults
    let observer = NotificationCenter.default.addObserver(
      forName: UserDefaults.didChangeNotification, object: watched, queue: nil
    ) { _ in heard.add("changed") }
    defer { NotificationCenter.default.removeObserver(observer) }
    watched.set(1, forKey: "own")
    #expect(heard.count == 1)
    watched.set(1, forKey: "own")
    #expect(heard.count == 1)
    #expect(try peer(["set", group, "theirs", "2"]).status == .exited(0))
    try heard.wait("the other process's change") { $0.count == 2 }
    #expect(watched.string(forKey: "theirs") == "2")
    again.set(3, forKey: "another object's")
    try heard.wait("another object's change") { $0.count == 3 }
  }

  @Test(.blocking, .notSanitized("many processes at once"))
  func eightProcessesLoseNoKeyAndFoundationsOwnDoes() throws {
    let times = TestRun.isLong ? 1000 : 150
    let peers = try (0..<8).map {
      try Running(
        Programs.built("DropInPeer"), ["set-keys", group, "\($0)", "\(times)"],
        environment: [GroupsRoot.setting])
    }
    for peer in peers { #expect(try peer.outcome(within: patience * 4).status == .exited(0)) }
    for process in 0..<8 {
      for key in 0..<10 {
        #expect(again.integer(forKey: "key \(process) \(key)") == times - 9 + key)
      }
    }

    // Foundation's suites lie below the home, and each process writes all that it knows of.
    var kept = 80
    // The processes need not meet the first time.
    for _ in 0..<5 where kept == 80 {
      let home = try TemporaryDirectory()
      let environment = ["HOME", "CFFIXED_USER_HOME", "XDG_CONFIG_HOME"].map {
        "\($0)=\(home.path)"
      }
      let others = try (0..<8).map {
        try Running(
          Programs.built("DropInPeer"), ["set-foundation-keys", "suite", "\($0)", "200"],
          environment: environment + [GroupsRoot.setting])
      }
      for other in others { #expect(try other.outcome(within: patience * 4).status == .exited(0)) }
      let counted = try run(
        Programs.built("DropInPeer"), ["count-foundation-keys", "suite", "200"],
        environment: environment + [GroupsRoot.setting])
      kept = try #require(Int(counted.output))
    }
    #expect((1..<80).contains(kept))
  }

  @Test(.blocking) func otherNamesStayFoundations() throws {
    let plain = try #require(UserDefaults(suiteName: "plain"))
    #expect(type(of: plain) == UserDefaults.self)
    #expect(type(of: defaults) != UserDefaults.self)
  }

  @Test(.blocking) func whatIsNoPropertyListIsRefusedInFoundationsWords() throws {
    let outcome = try peer(["set-null", group])
    #expect(outcome.status != .exited(0))
    #expect(outcome.errors.contains("This value is not supported by set(_:forKey:)"))
  }

  @Test(.blocking) func aGroupThatCannotBeHadIsNil() throws {
    #expect(UserDefaults(suiteName: "group." + String(repeating: "a", count: 300)) == nil)
    let url = FileManager.default.containerURL(
      forSecurityApplicationGroupIdentifier: String(repeating: "a", count: 300))
    #expect(url == nil)
  }
}
