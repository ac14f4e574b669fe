import SharedContainer
import Syscalls
import TestSupport
import TestTraits
import Testing
import Wormhole

/// Watching in numbers.
@Suite(.blocking) struct ManyWatchersTests {
  private let meeting: Meeting
  private var hole: Wormhole { meeting.hole }

  init() throws { meeting = try Meeting() }

  @Test func aHundredWatchersEachEndWithTheLastOfAThousandPuts() throws {
    let number = hole.channel("number", of: Int.self)
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
    let channels = (0..<1000).map { hole.channel("number.\($0)", of: Int.self) }
    // That a channel comes into being would be another word.
    for channel in channels { try channel.put(-1) }
    let heard = channels.map { _ in Heard<Int?>() }
    let watches = try zip(channels, heard).map { channel, heard in
      try channel.watch(present: false) { heard.add($0.value) }
    }
    let before = watches.map(\.wakeUps)
    let third = stride(from: 0, to: 1000, by: 3)
    for index in third { try channels[index].put(index) }
    for index in third { try heard[index].waitForLast(index) }
    for (index, watch) in watches.enumerated() {
      let mine = index.isMultiple(of: 3)
      #expect(heard[index].count == (mine ? 1 : 0))
      // An exchange, or a rename into an empty place, is one word from the kernel.
      #expect(watch.wakeUps - before[index] <= (mine ? 1 : 0))
    }
    for watch in watches { watch.stop() }
  }
}
