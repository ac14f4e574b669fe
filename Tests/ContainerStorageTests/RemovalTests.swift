import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// Slots that are removed permanently while processes change them.
@Suite(.serialized, .blocking) struct RemovalTests {
  private let folder: TemporaryDirectory
  private let path: String
  private static let isLong = TestRun.isLong

  init() throws {
    folder = try TemporaryDirectory()
    path = folder.path + "/c"
  }

  private func slot() throws -> Slot {
    try Container.open(path, options: .testing()).slot(.channels, "n")
  }

  private func names(_ folder: String) throws -> [String] {
    try Descriptor.open(path: path + "/" + folder, [.readOnly, .directory]).names().sorted()
  }

  @Test func nothingIsLeftOfIt() throws {
    let slot = try slot()
    #expect(try !slot.remove())
    for _ in 0..<3 { try slot.mark() }
    let other = try self.slot()
    #expect(try other.lastMark()?.number == 3)
    #expect(try slot.remove())
    #expect(try names("channels") == [])
    #expect(try names("staging") == [])
    #expect(try other.lastMark() == nil)
    #expect(try !other.remove())
    #expect(try names("channels") == [])
    #expect(try other.mark().number == 1)
    #expect(try slot.mark().number == 2)
  }

  @Test func whatIsForeignIsLeftAlone() throws {
    let slot = try slot()
    try slot.mark()
    for foreign in ["channels/n/notes.txt", "channels/n/lock/notes"] {
      #expect(try run("touch", [path + "/" + foreign]).status == .exited(0))
      let error = #expect(throws: WormholeError.self) { try slot.remove() }
      #expect(error?.code == .refused)
      #expect(try slot.lastMark()?.number == 1)
      #expect(try run("rm", [path + "/" + foreign]).status == .exited(0))
    }
    #expect(try slot.remove())
  }

  /// Every acknowledged update is in the value, or preceded a removal: of each count that was
  /// started, each number was returned once, and the value includes all numbers of the last count.
  ///
  /// How many removals succeed within a time is not promised: the updates continue until enough
  /// removals have succeeded.
  @Test func noUpdateIsLostBesideRemovals() throws {
    let least = Instant.now + (Self.isLong ? .seconds(30) : .seconds(2))
    let files = (0..<4).map { folder.path + "/marks.\($0)" }
    let markers = try files.map {
      try Running(.mark(path, "n", log: $0, end: folder.path + "/end"))
    }
    var (removals, kills) = (0, 0)
    var random = SeededRandom(seed: TestRun.seed)
    try eventually("removals beside updates", within: max(patience * 10, .seconds(60))) {
      let remover = try Running(.remove(path, "n", times: 20))
      if removals > 5, Bool.random(using: &random) {
        let _: Void? = Monitor(()).wait(until: .now + .milliseconds(8)) { _ in nil }
        // The remover may have ended on its own.
        if (try? remover.child.send(.kill)) != nil { kills += 1 }
      }
      removals += try remover.outcome().output.split(separator: "\n").filter { $0 == "removed" }
        .count
      return removals > 5 && kills > 0 && Instant.now > least
    }
    try folder.write("", to: "end")
    for marker in markers {
      let outcome = try marker.outcome()
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
    }
    var numbers: [UInt32: [Int]] = [:]
    for file in files {
      let text = String(
        decoding: try Descriptor.open(path: file, [.readOnly]).contents(), as: UTF8.self)
      for line in text.split(separator: "\n") {
        let mark = try #require(Mark(line))
        numbers[mark.count, default: []].append(mark.number)
      }
    }
    for (count, given) in numbers {
      #expect(given.sorted() == Array(1...given.count), "count \(count)")
    }
    try StandardStream.error.write(
      "\(numbers.count) counts, \(removals) removals, \(kills) kills\n")
    let last = try slot().lastMark()
    if let last { #expect(numbers[last.count]?.count == last.number) }
    // A removal that was killed may have left less than a whole slot, and no more.
    _ = try slot().remove()
    #expect(try names("channels") == [])
  }

  /// An overtaken remover removes nothing that arrived later: it begins again.
  @Test func whoeverIsStoppedInRemovingRemovesAllTheSame() throws {
    for point in try points() {
      for isLate in [false, true] { try stop(at: point, try slot().mark(), isLate) }
    }
  }

  /// The calls at which a removal is disturbed.
  private func points() throws -> [Int] {
    try slot().mark()
    let outcome = try Running(
      .remove(path, "n", times: 1),
      environment: ["WORMHOLE_FAULT_TRACE=\(folder.path)/trace"]
    ).outcome()
    #expect(outcome.output.hasSuffix("removed\n"))
    let seed = TestRun.seed
    try StandardStream.error.write("replay: WORMHOLE_SEED=\(seed)\n")
    var random = SeededRandom(seed: seed)
    let calls = try folder.read("trace").split(separator: "\n")
    let some = Set(SweptRun.points(calls.count, &random))
    // Always at calls that take a file out or close a directory.
    return (1...calls.count).filter {
      some.contains($0) || calls[$0 - 1].contains("rename") || calls[$0 - 1].contains("rmdir")
    }
  }

  /// Waits until the remover has made the disturbed call and has checked its effect; or until the
  /// remover waits itself.
  private func waitForMore(of remover: Running, at point: Int) throws {
    var limit = TimeLimit(.milliseconds(100))
    while !remover.hasEnded, !limit.isOver() {
      if try folder.read("trace.\(point)").split(separator: "\n").count > point + 2 { return }
      let _: Void? = Monitor(0).wait(until: .now + .milliseconds(1)) { _ in nil }
    }
  }

  /// - Parameter isLate: whether the remover resumes after an update has ended, and not during the
  ///   update.
  private func stop(at point: Int, _ before: Mark, _ isLate: Bool) throws {
    let place: Comment = "at call \(point), \(isLate ? "late" : "meanwhile")"
    let remover = try Running(
      .remove(path, "n", times: 1),
      environment: [
        "WORMHOLE_FAULTS=any@\(point):before:stop",
        "WORMHOLE_FAULT_TRACE=\(folder.path)/trace.\(point)",
      ])
    try eventually("call \(point): stops or ends") {
      try remover.hasEnded || Processes.isStopped(remover.child.process)
    }
    // The remover continues while this process is inside an update.
    let slot = try slot()
    let inside = try slot.mark {
      guard !remover.hasEnded, !isLate else { return }
      try remover.child.send(.go)
      try waitForMore(of: remover, at: point)
    }
    let said = try remover.waitOrGo()
    let wasThere = said.contains("removed")
    let found = try slot.lastMark()
    // If the slot was removed before, the count that was started then stays, or is removed as well.
    if inside.count != before.count || !wasThere {
      #expect(found == inside || found == nil, place)
    } else {
      #expect(found == nil, place)
    }
    // Whatever goes is cleared first.
    if found == nil { #expect(said.contains("clears \(inside.count) \(inside.number)\n"), place) }
    let next = try self.slot().mark()
    #expect(next == Mark(count: next.count, number: (found?.number ?? 0) + 1), place)
    if let found { #expect(next.count == found.count, place) }
    #expect(try slot.mark().number == next.number + 1, place)
  }

  @Test func whoeverIsKilledInRemovingLeavesNothingHalf() throws {
    for point in try points() {
      let before = try slot().mark()
      _ = try Running(
        .remove(path, "n", times: 1),
        environment: ["WORMHOLE_FAULTS=any@\(point):before:kill"]
      ).outcome()
      let found = try slot().lastMark()
      #expect(found == before || found == nil, "at call \(point)")
      let next = try slot().mark()
      #expect(next.number == (found?.number ?? 0) + 1, "at call \(point)")
      #expect(try slot().remove(), "at call \(point)")
      #expect(try names("channels") == [], "at call \(point)")
    }
  }
}
