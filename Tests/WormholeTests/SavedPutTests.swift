import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// P7, for a program that goes on running: its values reach the disk behind its puts.
@Suite(.blocking) struct SavedPutTests {
  private let meeting: Meeting
  private let channel: Channel<Int>

  init() throws {
    meeting = try Meeting()
    channel = meeting.container.channel("speed", of: Int.self)
  }

  private func isSaved() throws -> Bool {
    let path = meeting.path + "/channels/speed/"
    // For a moment there is no previous value.
    let kept = try? Descriptor.status(ofPath: path + "kept.plist", following: false)
    let value = try Descriptor.status(ofPath: path + "value.plist", following: false)
    return kept?.isSameFile(as: value) == true
  }

  /// The notice is the rename: no sync comes before it, however long ago the last put was.
  @Test func aRarePutOfARunningProgramIsNotSyncedBeforeItsNotice() throws {
    try channel.put(1)
    for value in 2...3 {
      try channel.put(value)
      try eventually("the value is saved") { try isSaved() }
      let later = Instant.now + .milliseconds(1100)
      try eventually("more than a second has passed") { Instant.now > later }
      let calls = try FaultPoints.with { try channel.put(value + 10) }
      #expect(calls.contains { $0.hasPrefix("rename") && $0.hasSuffix("/value.plist") }, "\(calls)")
      #expect(!calls.contains { $0.hasPrefix("fsync") }, "\(calls)")
    }
  }

  @Test func closingWaitsForTheDisk() throws {
    for value in 1...3 { try channel.put(value) }
    meeting.container.close()
    #expect(try isSaved())
  }

  /// A save would wait for the update that waits for it.
  @Test func closingInsideAnUpdateDoesNotWait() throws {
    try channel.put(1)
    try channel.put(2)
    try channel.update { value in
      meeting.container.close()
      value = 3
    }
    #expect(try channel.value == 3)
  }

  /// The waiting save retains the container only until it is made.
  @Test func aReleasedContainerIsSavedAndReleased() throws {
    weak var released: SharedContainer?
    do {
      let other = try meeting.another()
      let channel = other.channel("speed", of: Int.self)
      for value in 1...3 { try channel.put(value) }
      released = other
    }
    #expect(released == nil)
    try eventually("the value is saved") { try isSaved() }
  }
}
