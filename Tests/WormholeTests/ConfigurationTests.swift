import Foundation
import Observation
import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage

/// A channel with a default, whose readers survive values that cannot be used.
@Suite struct ConfigurationTests {
  struct Config: Codable, Equatable {
    var workers = 4
  }

  struct TooMany: Error, Equatable {
    let workers: Int
  }

  private let meeting: Meeting
  private let container: SharedContainer
  private let entries = Heard<LogEntry>()
  private var config: ConfigurationChannel<Config> {
    container.channel("config", default: Config()) { value in
      if value.workers > 100 { throw TooMany(workers: value.workers) }
    }
  }
  /// The same channel in a program that knows nothing of the type.
  private let other: SharedContainer

  init() throws {
    meeting = try Meeting()
    let entries = entries
    container = try meeting.another { $0.log = { entries.add($0) } }
    other = try meeting.another()
  }

  @Test func aChannelWithoutAValueHasTheDefault() async throws {
    var values = config.values.makeAsyncIterator()
    #expect(try await values.next() == Config())
    #expect(try config.value == Config())
    #expect(try container.channels() == [])
    try await config.put(Config(workers: 8))
    #expect(try await values.next() == Config(workers: 8))
    try await config.channel.clear()
    #expect(try await values.next() == Config())
    #expect(try config.value == Config())
    #expect(entries.all.isEmpty)
  }

  @Test func aValueThatCannotBeReadIsLoggedOnceAndTheLastGoodOneStays() async throws {
    let (config, heard) = (config, Heard<Int>())
    let task = Task { for try await value in config.values { heard.add(value.workers) } }
    defer { task.cancel() }
    try await becomes("the default") { heard.all == [4] }
    try await config.put(Config(workers: 8))
    try await becomes("the first value") { heard.all == [4, 8] }
    try await other.channel("config").put("eight")
    try await becomes("the log entry") { !entries.all.isEmpty }
    // Neither a second reader nor a repeated reading logs the version again.
    for _ in 1...3 { #expect(try config.value == Config(workers: 8)) }
    var second = config.values.makeAsyncIterator()
    #expect(try await second.next() == Config(workers: 8))
    try await config.put(Config(workers: 9))
    try await becomes("the next value") { heard.all == [4, 8, 9] }
    #expect(entries.all.map(\.code) == [.typeMismatch])
    #expect(entries.all.map(\.level) == [.error])
    #expect(entries.all.first?.fields["channel"] == "config")
    try await other.channel("config").put("nine")
    try await becomes("the log entry of the next version") { entries.all.count == 2 }
    #expect(heard.all == [4, 8, 9])
  }

  @Test func aStartWithABadValueGivesTheDefaultAndLogsIt() async throws {
    try await other.channel("config").put("eight")
    let config = config
    var values = config.values.makeAsyncIterator()
    #expect(try await values.next() == Config())
    #expect(try config.value == Config())
    #expect(entries.all.map(\.code) == [.typeMismatch])
  }

  @Test func resultsHandOutEachVersion() async throws {
    var results = config.results.makeAsyncIterator()
    #expect(try await results.next()?.get() == Config())
    try await other.channel("config").put("eight")
    let bad = try #require(try await results.next())
    #expect(throws: WormholeError.self) { try bad.get() }
    try await other.channel("config").put(Config(workers: 101))
    let refused = try #require(try await results.next())
    guard case .failure(let error) = refused else {
      Issue.record("the value was not checked")
      return
    }
    #expect(error.code == .invalidValue)
    #expect(error.reason.contains("101"))
    try await config.put(Config(workers: 9))
    #expect(try await results.next()?.get() == Config(workers: 9))
  }

  @Test func damageEndsNoSequence() async throws {
    let config = config
    try await config.put(Config(workers: 8))
    var values = config.values.makeAsyncIterator()
    #expect(try await values.next() == Config(workers: 8))
    try meeting.overwrite("channels/config/value.plist", [1, 2, 3])
    try await config.put(Config(workers: 9))
    #expect(try await values.next() == Config(workers: 9))
  }

  @Test func aContainerThatIsGoneEndsBoth() async throws {
    let config = config
    var values = config.values.makeAsyncIterator()
    var results = config.results.makeAsyncIterator()
    #expect(try await values.next() == Config())
    #expect(try await results.next()?.get() == Config())
    try FileManager.default.removeItem(atPath: meeting.path)
    do {
      let value = try await values.next()
      Issue.record("\(String(describing: value))")
    } catch {
      #expect(error.code == .notAContainer)
    }
    do {
      let result = try await results.next()
      Issue.record("\(String(describing: result))")
    } catch {
      #expect(error.code == .notAContainer)
    }
    #expect(try await values.next() == nil)
    #expect(try await results.next() == nil)
    #expect(throws: WormholeError.self) { try config.value }
  }

  @Test func theCheckRefusesWithTheCallersError() async throws {
    let config = config
    try await config.put(Config(workers: 8))
    await #expect(throws: TooMany(workers: 101)) {
      try await config.put(Config(workers: 101))
    }
    await #expect(throws: TooMany(workers: 108)) {
      try await config.update { $0.workers += 100 }
    }
    let (put, update) = blockingRefusals(config)
    #expect(put == TooMany(workers: 102) && update == TooMany(workers: 208))
    #expect(try config.channel.latest?.version == 1)
    #expect(try await config.update { $0.workers += 1 } == Config(workers: 9))
    // Another program is not bound by the check: the reader keeps its last good value.
    #expect(try config.value == Config(workers: 9))
    try await other.channel("config").put(Config(workers: 1000))
    #expect(try config.value == Config(workers: 9))
    #expect(entries.all.map(\.code) == [.invalidValue])
  }

  private func blockingRefusals(
    _ config: ConfigurationChannel<Config>
  ) -> (put: TooMany?, update: TooMany?) {
    func refusal(_ body: () throws -> Void) -> TooMany? {
      do {
        try body()
        return nil
      } catch { return error as? TooMany }
    }
    return (
      refusal { try config.put(Config(workers: 102)) },
      refusal { try config.update { $0.workers += 200 } }
    )
  }

  @MainActor @Test func aModelFollowsTheChannel() async throws {
    let model = try ObservableChannel(config)
    #expect(model.value == Config())
    let changes = Heard<Int>()
    withObservationTracking {
      _ = model.value
    } onChange: {
      changes.add(1)
    }
    try await other.channel("config").put("eight")
    try await becomes("the log entry") { !entries.all.isEmpty }
    #expect(changes.all.isEmpty)
    try await other.channel("config").put(Config(workers: 8))
    try await becomes("the change") { model.value == Config(workers: 8) }
    #expect(changes.all == [1])
    try await other.channel("config", of: Config.self).clear()
    try await becomes("the default") { model.value == Config() }
  }

  @MainActor @Test func aReleasedModelEndsItsWatch() async throws {
    var model: ObservableChannel<Config>? = try ObservableChannel(config)
    #expect(model?.value == Config() && container.watchers > 0)
    model = nil
    try await becomes("the end of the watch") { container.watchers == 0 }
  }
}
