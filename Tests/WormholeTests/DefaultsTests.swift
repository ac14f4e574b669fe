import Foundation
import Observation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Settings with the interface of user defaults.
@Suite struct DefaultsTests {
  private let meeting: Meeting
  private let defaults: Defaults

  init() throws {
    meeting = try Meeting()
    defaults = meeting.container.defaults("app")
  }

  @Test(.blocking) func everyTypeIsSetAndRead() throws {
    let (data, date) = (Data([0, 255]), Date(timeIntervalSinceReferenceDate: 0.25))
    try defaults.set("text", forKey: "string")
    try defaults.set(42, forKey: "integer")
    try defaults.set(1.5, forKey: "double")
    try defaults.set(true, forKey: "bool")
    try defaults.set(data, forKey: "data")
    try defaults.set(date, forKey: "date")
    try defaults.set(["a", "b"], forKey: "array")
    try defaults.set(["k": 1], forKey: "dictionary")
    let other = try meeting.another().defaults("app")
    #expect(try other.string(forKey: "string") == "text")
    #expect(try other.integer(forKey: "integer") == 42)
    #expect(try other.double(forKey: "double") == 1.5)
    #expect(try other.bool(forKey: "bool"))
    #expect(try other.data(forKey: "data") == data)
    #expect(try other.date(forKey: "date") == date)
    #expect(try other.array(forKey: "array") == ["a", "b"])
    #expect(try other.stringArray(forKey: "array") == ["a", "b"])
    #expect(try other.dictionary(forKey: "dictionary") == ["k": 1])
    #expect(try other.object(forKey: "integer") == 42)
    #expect(try other.dictionaryRepresentation().count == 8)
    #expect(other.synchronize())
  }

  /// To the kernel, two spellings of a letter are two names.
  @Test(.blocking) func whatSwiftTakesForTheSameIsSetAllTheSame() throws {
    let spellings = ["Z\u{fc}rich", "Zu\u{308}rich"]
    for spelling in spellings {
      try defaults.set(spelling, forKey: "city")
      #expect(try defaults.string(forKey: "city").map { Array($0.utf8) } == Array(spelling.utf8))
    }
    try defaults.set(0.0, forKey: "zero")
    try defaults.set(-0.0, forKey: "zero")
    #expect(try defaults.double(forKey: "zero").sign == .minus)
  }

  @Test(.blocking) func whatIsNotThereIsNothingZeroOrFalse() throws {
    #expect(try defaults.string(forKey: "k") == nil)
    #expect(try defaults.integer(forKey: "k") == 0)
    #expect(try defaults.double(forKey: "k") == 0)
    #expect(try !defaults.bool(forKey: "k"))
    #expect(try defaults.data(forKey: "k") == nil)
    #expect(try defaults.value(Order.self, forKey: "k") == nil)
    #expect(try defaults.dictionaryRepresentation() == [:])
    #expect(try meeting.container.channels() == [])
  }

  @Test(.blocking) func theConversionsOfUserDefaults() throws {
    try defaults.update {
      $0 = ["n": "12", "r": 2.9, "t": true, "yes": "YES", "big": .unsigned(.max), "x": "x"]
    }
    #expect(try defaults.integer(forKey: "n") == 12)
    #expect(try defaults.integer(forKey: "r") == 2)
    #expect(try defaults.integer(forKey: "t") == 1)
    #expect(try defaults.integer(forKey: "big") == 0)
    #expect(try defaults.integer(forKey: "x") == 0)
    #expect(try defaults.double(forKey: "n") == 12)
    #expect(try defaults.double(forKey: "r") == 2.9)
    #expect(try defaults.double(forKey: "t") == 1)
    #expect(try defaults.double(forKey: "big") == Double(UInt64.max))
    #expect(try defaults.double(forKey: "x") == 0)
    #expect(try defaults.float(forKey: "n") == 12)
    #expect(try defaults.string(forKey: "r") == "2.9")
    #expect(try defaults.string(forKey: "t") == "1")
    #expect(try defaults.string(forKey: "big") == "18446744073709551615")
    #expect(try defaults.bool(forKey: "yes"))
    #expect(try defaults.bool(forKey: "r"))
    #expect(try !defaults.bool(forKey: "x"))
    #expect(try defaults.stringArray(forKey: "x") == nil)
  }

  @Test(.blocking) func addressesAreTexts() throws {
    let other = try meeting.another().defaults("app")
    let site = try #require(URL(string: "https://swift.org/a?b=c"))
    try defaults.set(site, forKey: "site")
    try defaults.set(URL(filePath: "/tmp/a b"), forKey: "file")
    try defaults.set("~/notes", forKey: "home")
    #expect(try other.url(forKey: "site") == site)
    #expect(try other.string(forKey: "file") == "/tmp/a b")
    #expect(try other.url(forKey: "file")?.path == "/tmp/a b")
    let home = Processes.environment("HOME") ?? "~"
    #expect(try other.url(forKey: "home")?.path == home + "/notes")
    #expect(try other.url(forKey: "none") == nil)
    try defaults.set(nil as URL?, forKey: "site")
    #expect(try other.object(forKey: "site") == nil)
    try defaults.set(1.5, forKey: "r")
    #expect(try other.float(forKey: "r") == 1.5)
  }

  @Test(.blocking) func anyCodableIsAValue() throws {
    let order = Order(film: "Ran", seats: [.init(row: 1, number: 2)], note: "n")
    try defaults.set(order, forKey: "order")
    #expect(try defaults.value(Order.self, forKey: "order") == order)
    let error = try failure { _ = try defaults.value([Int].self, forKey: "order") }
    #expect(error.code == .typeMismatch)
    #expect(error.description.hasPrefix("cannot read defaults 'app': at 'order': a dictionary"))
  }

  @Test(.blocking) func removedKeysFallBackToWhatIsRegistered() throws {
    defaults.register(defaults: ["volume": 5, "name": "none"])
    #expect(try defaults.integer(forKey: "volume") == 5)
    try defaults.set(7, forKey: "volume")
    #expect(try defaults.integer(forKey: "volume") == 7)
    #expect(try defaults.dictionaryRepresentation() == ["volume": 7, "name": "none"])
    try defaults.removeObject(forKey: "volume")
    #expect(try defaults.value(Int.self, forKey: "volume") == 5)
    try defaults.set(Int?.none, forKey: "name")
    #expect(try defaults.string(forKey: "name") == "none")
    #expect(try meeting.container.defaults("app").object(forKey: "name") == nil, "not stored")
    #expect(try failure { _ = try defaults.value(Int.self, forKey: "name") }.code == .typeMismatch)
  }

  @Test(.blocking) func twoProcessesSetDifferentKeysAndLoseNone() throws {
    let peers = try (0..<2).map { index in
      try Running(.set(meeting.path, "app", prefix: "peer\(index).", count: 100))
    }
    for index in 0..<100 { try defaults.set(index, forKey: "own.\(index)") }
    for peer in peers { #expect(try peer.outcome().status == .exited(0)) }
    let all = try defaults.dictionaryRepresentation()
    #expect(all.count == 300)
    for index in 0..<100 { #expect(all["peer1.\(index)"]?.intValue == index) }
  }

  @Test(.blocking) func whatDoesNotChangeIsNotWritten() throws {
    try defaults.set(1, forKey: "a")
    let before = try meeting.bytes(of: "system/defaults.app/value.plist")
    try defaults.set(1, forKey: "a")
    try defaults.removeObject(forKey: "b")
    #expect(try meeting.bytes(of: "system/defaults.app/value.plist") == before)
  }

  /// Another tool writes the same value during the first try, and takes no lock.
  @Test(.blocking) func aSecondTryWithoutAChangeReportsNoVersion() throws {
    let (model, value) = (try Meeting(), "system/defaults.app/value.plist")
    try model.container.defaults("app").set(1, forKey: "a")
    let bytes = try model.bytes(of: value)
    var tries = 0
    let version = try defaults.change { values throws(WormholeError) in
      tries += 1
      values["a"] = 1
      guard tries == 1, let folder = try? meeting.folder("system/defaults.app") else { return }
      try? folder.open("made", [.writeOnly, .create], mode: 0o600).write(bytes)
      try? folder.rename("made", to: folder, "value.plist")
    }
    #expect(version == nil && tries == 2)
    #expect(try defaults.change { $0["a"] = 2 } == 2)
  }

  /// The owner of the memory may change or free the memory once the data is set.
  @Test(.blocking) func dataThatIsSetIsInMemoryOfItsOwn() throws {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 1)
    defer { memory.deallocate() }
    func fill(_ byte: UInt8) { memory.initializeMemory(as: UInt8.self, repeating: byte) }
    fill(1)
    let start = try #require(memory.baseAddress)
    let data = Data(bytesNoCopy: start, count: memory.count, deallocator: .none)
    let keys = ["alone", "in an array", "updated"]
    _ = try defaults.change(keys[0], to: .data(data))
    _ = try defaults.change(keys[1], to: .array([.data(data)]))
    fill(2)
    try defaults.set(1, forKey: "another")
    fill(1)
    try defaults.update { $0[keys[2]] = .data(data) }
    fill(2)
    try defaults.set(2, forKey: "another")
    let set = PropertyListValue.data(Data(repeating: 1, count: memory.count))
    #expect(try keys.map { try defaults.object(forKey: $0) } == [set, .array([set]), set])
  }

  @Test(.blocking) func aDamagedSuiteIsAnErrorUntilItIsEmptied() throws {
    try defaults.set(1, forKey: "a")
    try meeting.overwrite("system/defaults.app/value.plist", [1])
    try? Descriptor.open(path: meeting.path + "/system/defaults.app", [.readOnly, .directory])
      .unlink("kept.plist")
    let error = try failure { _ = try defaults.integer(forKey: "a") }
    #expect(error.code == .damaged)
    #expect(error.description.hasPrefix("cannot read defaults 'app': "))
    let writing = try failure { try defaults.set(2, forKey: "a") }
    #expect(writing.code == .damaged)
    #expect(writing.operation == "write defaults")
    try defaults.removeAll()
    try defaults.set(2, forKey: "a")
    #expect(try defaults.integer(forKey: "a") == 2)
  }

  @Test(.blocking) func badNamesAreRefused() throws {
    let long = meeting.container.defaults(String(repeating: "x", count: 181))
    #expect(try failure { try long.set(1, forKey: "a") }.code == .invalidName)
    #expect(try failure { _ = try long.integer(forKey: "a") }.code == .invalidName)
  }

  // MARK: Watching

  @Test(.blocking) func aKeysWatcherHearsOfThatKeyAlone() throws {
    let heard = Heard<Int?>()
    try defaults.set(1, forKey: "volume")
    let watch = try defaults.watch("volume", of: Int.self) { heard.add($0) }
    try heard.waitForLast(1)
    let outcome = try run(.set(meeting.path, "app", prefix: "other.", count: 20))
    #expect(outcome.status == .exited(0))
    try defaults.set(1, forKey: "volume")
    try defaults.set(2, forKey: "volume")
    try heard.waitForLast(2)
    defaults.register(defaults: ["volume": 9])
    try defaults.removeObject(forKey: "volume")
    try heard.waitForLast(9)
    #expect(heard.all == [1, 2, 9])
    watch.stop()
  }

  @Test(.blocking) func withoutThePresentValueOnlyChangesAreHeard() throws {
    let heard = Heard<String?>()
    try defaults.set("old", forKey: "name")
    let watch = try defaults.watch("name", of: String.self, initial: false) { heard.add($0) }
    try defaults.set(1, forKey: "other")
    try defaults.set("new", forKey: "name")
    try heard.waitForLast("new")
    try defaults.removeObject(forKey: "name")
    try heard.waitForLast(nil)
    #expect(heard.all == ["new", nil])
    watch.stop()
  }

  @Test(.blocking) func anotherTypeIsAFailureAndTheWatchGoesOn() throws {
    let (heard, failures) = (Heard<Int?>(), Heard<String>())
    let watch = try defaults.watch("volume", of: Int.self) {
      heard.add($0)
    } failure: {
      failures.add($0.reason)
    }
    try defaults.set("loud", forKey: "volume")
    try failures.waitForLast("at 'volume': a string where Int is expected")
    try defaults.set(3, forKey: "volume")
    try heard.waitForLast(3)
    watch.stop()
  }

  @Test func asASequence() async throws {
    var values = defaults.values(forKey: "volume", of: Int.self).makeAsyncIterator()
    try await defaults.set(1, forKey: "volume")
    #expect(try await values.next() == 1)
    try await defaults.set(1, forKey: "other")
    try await defaults.set(2, forKey: "volume")
    #expect(try await values.next() == 2)
  }

  @MainActor @Test func aModelTellsWhoReadsAKey() async throws {
    try await defaults.set(1, forKey: "volume")
    let model = ObservableDefaults(defaults)
    let changes = Heard<String>()
    func track(_ key: String) -> PropertyListValue? {
      withObservationTracking {
        model[key]
      } onChange: {
        changes.add(key)
      }
    }
    #expect(track("volume") == 1)
    #expect(track("other") == nil)
    let outcome = try run(.set(meeting.path, "app", prefix: "key.", count: 3))
    #expect(outcome.status == .exited(0))
    let other = try meeting.another().defaults("app")
    try await other.set(2, forKey: "volume")
    try await becomes("the model follows") { model["volume"] == 2 }
    #expect(changes.all == ["volume"])
    try model.set("x", forKey: "other")
    #expect(model["other"] == "x")
    #expect(changes.all == ["volume", "other"])
    #expect(try other.string(forKey: "other") == "x")
  }
}
