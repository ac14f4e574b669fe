import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Watching in numbers.
@Suite(.blocking) struct ManyWatchersTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting() }

  @Test func aHundredWatchersEachEndWithTheLastOfAThousandPuts() throws {
    let number = container.channel("number", of: Int.self)
    let other = try meeting.another().channel("number", of: Int.self)
    let heard = (0..<100).map { _ in Heard<Int?>() }
    let watches = try heard.enumerated().map { index, heard in
      try (index.isMultiple(of: 2) ? number : other).watch { heard.add($0.value) }
    }
    let outcome = try run(
      .put(meeting.path, "number", 1...1000))
    #expect(outcome.status == .exited(0))
    for heard in heard {
      try heard.waitForLast(1000)
      let values = heard.all.compactMap(\.self)
      #expect(values == values.sorted())
    }
    for watch in watches { watch.stop() }
  }

  @Test func ofAThousandChannelsAWatcherIsWokenOnlyForItsOwn() throws {
    // If the kernel drops notices, as another test may cause, all watches rescan, and some of them
    // twice. So a round counts if no notices were dropped in this round or in the round before.
    var rescans = Watcher.shared.rescanCount
    let channels = (0..<1000).map { container.channel("number.\($0)", of: Int.self) }
    // The creation of a channel would be a notice of its own.
    for channel in channels { try channel.put(-1) }
    let heard = channels.map { _ in Heard<Int?>() }
    let watches = try zip(channels, heard).map { channel, heard in
      try channel.watch(initial: false) { heard.add($0.value) }
    }
    let third = stride(from: 0, to: 1000, by: 3)
    let deadline = Instant.now + patience
    for round in 1... {
      let start = Watcher.shared.rescanCount
      let before = watches.map(\.wakeUps)
      for index in third { try channels[index].put(round) }
      for index in third { try heard[index].waitForLast(round) }
      let woken = zip(watches, before).map { $0.wakeUps - $1 }
      guard Watcher.shared.rescanCount == rescans else {
        try #require(.now < deadline, "all are told to look again all the time")
        rescans = start
        continue
      }
      for index in watches.indices {
        let mine = index.isMultiple(of: 3)
        #expect(heard[index].count == (mine ? round : 0))
        // An exchange, or a rename to a free name, is one notice from the kernel.
        #expect(woken[index] <= (mine ? 1 : 0))
      }
      break
    }
    for watch in watches { watch.stop() }
  }
}
