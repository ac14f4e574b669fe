import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// P9 for numbers: each number in each file of a container, made as great, as small and as odd as
/// its type can hold, is an error at most.
@Suite(.blocking) struct NumberTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting() }

  private func put(_ bytes: [UInt8], _ path: String) throws {
    let file = try Descriptor.open(path: path, [.writeOnly, .create, .truncate], mode: 0o600)
    if !bytes.isEmpty { try file.write(bytes) }
  }

  // MARK: In property lists

  /// Makes an example of every kind of file.
  private func furnish() throws {
    try container.channel("c", of: Int.self).put(1, durability: .power)
    try container.channel("c", of: Int.self).put(2, durability: .power)
    try container.defaults("d").set(1, forKey: "k")
    let member = try container.join(as: "a")
    try meeting.folder.write("content", to: "sent")
    let peer = member.peer("b")
    try peer.send(1, .quick { $0.timeToLive = .seconds(1000) })
    try peer.send(contentsOf: [1, 2, 3], .quick())
    try peer.send(file: meeting.folder.path + "/sent", metadata: 1, .quick())
    try peer.setContext(1, durability: .process)
    member.leave()
    let name = try #require(try meeting.names("members/b/inbox").first)
    let dead = meeting.path + "/members/b/dead/" + name
    try put(try meeting.bytes(of: "members/b/inbox/\(name)"), dead)
    try put(try BinaryEncoder().encode(Reason()), dead + ",reason")
    let wake = try container.storage.slot(.system, "wake.a")
    try wake.change("write") { _ in .put(try BinaryEncoder().encode(Wake())) }
  }

  private struct Reason: Encodable {
    var reason = "why"
    var attempts = 3
    var when = Date()
  }

  private struct Wake: Encodable {
    var id = "0123456789abcdef"
    var started = Clocks.sinceBoot
    var by = "somebody"
    var program = "true"
    var process = 1
    var namespace = 1
    var ticks = 1
    var failure = "it failed"
    var ended = Clocks.sinceBoot
  }

  /// All operations of a program on the content of a container; errors are as good as success.
  ///
  /// Returns whether the container could be opened.
  @discardableResult private func use(_ path: String) -> Bool {
    var options = Options()
    options.lease = .milliseconds(50)
    options.timeout = .seconds(2)
    guard let container = try? SharedContainer(directory: path, options: options) else {
      return false
    }
    let channel = container.channel("c", of: Int.self)
    _ = try? container.storage.inspect()
    _ = container.inspectMail()
    _ = try? container.unshaped("c")
    _ = try? channel.latest
    for number in 1...3 { _ = try? channel.put(number) }
    _ = try? channel.update(default: 0) { $0 = 7 }
    #expect((try? channel.value) == 7)
    _ = try? container.defaults("d").set(2, forKey: "k")
    _ = try? container.members()
    let peer = container.peer("b")
    _ = try? peer.queue
    for letter in (try? peer.deadLetters) ?? [] { _ = try? peer.retry(id: letter.id) }
    if (try? container.registerLaunch(of: "a", program: "true")) != nil {
      _ = try? container.peer("a").wake(within: .milliseconds(1))
    }
    try? receive(container)
    return true
  }

  private func receive(_ container: SharedContainer) throws {
    let member = try container.join(as: "b")
    let last = try container.guest().peer("b").send("last", .quick())
    let receiving = try member.receive { _ in }
    // This message is handled last, unless another message's stamp is in the future.
    _ = last.waitForEnd(until: .now + .milliseconds(300))
    receiving.stop()
    member.leave()
  }

  private static let isLong = TestRun.isLong

  private static let extremes: [PropertyListValue] = [
    .integer(.min), .integer(-1), .integer(0), .integer(1 << 32), .integer(.max - 1),
    .integer(.max), .unsigned(.max), .real(.nan), .real(-.greatestFiniteMagnitude),
    .date(Date(timeIntervalSinceReferenceDate: .greatestFiniteMagnitude)),
    .date(Date(timeIntervalSinceReferenceDate: .nan)),
  ]

  @Test(.notSanitized("on one thread")) func noNumberInAListIsTrusted() throws {
    try furnish()
    let listing = try run("find", [meeting.path, "-type", "f"]).output
    var (changed, opened) = (0, 0)
    for file in listing.split(separator: "\n").map(String.init).sorted() {
      let bytes = try Descriptor.open(path: file, [.readOnly]).contents()
      guard !file.contains("/lock/"),
        case .dictionary(let list)? =
          try? BinaryPropertyList
          .decode(bytes)
      else { continue }
      for extreme in Self.extremes {
        // All numbers at once; in a long run also each number alone, because the check of one
        // number may precede the check of another.
        var odd = list
        for (key, value) in list where value.isNumber { odd[key] = extreme }
        var variants = [odd]
        for (key, value) in list where value.isNumber && Self.isLong {
          variants.append(list.merging([key: extreme]) { $1 })
        }
        if case .dictionary(let inner)? = list["file"] {
          let all = inner.mapValues { $0.isNumber ? extreme : $0 }
          variants.append(list.merging(["file": .dictionary(all)]) { $1 })
        }
        for variant in variants where variant != list {
          // A program woken in a copy may still write there, and keep the copy from being removed.
          let path = meeting.folder.path + "/copy\(changed)"
          #expect(try run("cp", ["-a", meeting.path, path]).status == .exited(0))
          let odd = try BinaryEncoder().encode(PropertyListValue.dictionary(variant))
          try put(odd, path + file.dropFirst(meeting.path.count))
          if use(path) { opened += 1 }
          _ = try run("rm", ["-r", path])
          changed += 1
        }
      }
    }
    #expect(changed > (Self.isLong ? 200 : 30))
    #expect(opened > changed / 2, "\(opened) of \(changed)")
  }

  @Test func noDeadlineOfARequestIsTrusted() throws {
    let member = try meeting.another { $0.youth = .zero }.join(as: "b")
    let responding = member.respond(toKind: "Int") { request in try? request.reply(7) }
    for (number, deadline) in [Int64.min, -1, 0, 1, .max - 1, .max].enumerated() {
      let list: PropertyListValue = [
        "from": "", "incarnation": "", "kind": "Int", "deadline": .integer(deadline), "value": 1,
      ]
      let name = "0000100000000000000\(number),q,000000000000000\(number),7fffffffffffffff"
      let staged = meeting.folder.path + "/question"
      try put(try BinaryEncoder().encode(list), staged)
      let folder = "\(meeting.path)/members/b/live/\(member.incarnation)"
      _ = try run("mv", [staged, "\(folder)/\(name)"])
    }
    // No requester waits for the replies to these requests; a real requester gets its reply.
    let answer = try container.peer("b").request(1, as: Int.self)
    #expect(answer == 7)
    responding.stop()
  }

  // MARK: Elsewhere

  @Test func noNumberInAMarkIsTrusted() throws {
    try furnish()
    let channel = container.channel("c", of: Int.self)
    for word in [.max, 1 << 63, 1 << 31, 0, .max - 1] as [UInt64] {
      var mark = SIMD8<UInt64>(repeating: word)
      mark[0] = mark[0] << 32 | 0x314D_4857
      let bytes = withUnsafeBytes(of: mark) { Array($0) }
      for file in ["channels/c/lock/1", "members/a/presence"] {
        try put(bytes, meeting.path + "/" + file)
      }
      _ = try container.storage.inspect()
      _ = try container.members()
      try channel.put(1)
      try container.join(as: "a").leave()
    }
  }

  @Test func noNumberInANameIsTrusted() throws {
    try furnish()
    let message = try meeting.bytes(of: "members/b/inbox/\(meeting.names("members/b/inbox")[0])")
    let stamps = ["00000000000000000000", "ffffffffffffffffffff", "fffff000000000000000"]
    for (number, stamp) in stamps.enumerated() {
      for count in ["01", "40", "41", "ff"] {
        let name = "1,\(stamp),n\(count),\(number)\(count),"
        try put(message, "\(meeting.path)/members/b/inbox/\(name)")
        for attempt in ["1", "999", "1000", "9223372036854775807", "-1"] {
          try put(message, "\(meeting.path)/members/b/claimed/\(name)~\(attempt)")
        }
      }
      try put(message, "\(meeting.path)/members/b/receipts/1,\(stamp),r01,x,b.ok")
    }
    for lock in ["9223372036854775807", "9223372036854775807.d", "-1", "0"] {
      try put([], "\(meeting.path)/channels/c/lock/\(lock)")
    }
    use(meeting.path)
  }

  @Test func noRecordOfABatchIsTrusted() throws {
    try furnish()
    for byte in [UInt8(0xff), 0x3f, 0x7f, 0x80, 1] {
      let records = [UInt8](repeating: byte, count: 256 * 128)
      try put(records, "\(meeting.path)/members/b/progress")
      use(meeting.path)
    }
  }

  @Test func noTimeOfAFileIsTrusted() throws {
    // A file system in memory can store all times that the kernel knows.
    guard let memory = try AnotherFileSystem() else { return }
    try put([1], memory.path + "/f")
    for time in ["@-9223372036854775807", "@-1", "@0", "@9000000001", "@9223372036854775807"] {
      let touched = try run("touch", ["-d", time, memory.path + "/f"])
      #expect(touched.status == .exited(0), "\(touched.errors)")
      #expect(try Descriptor.open(path: memory.path + "/f", [.readOnly]).status().modified >= 0)
    }
  }

  @Test func aStartThatHasFailedEverSoOftenIsNoMoreThanDamaged() throws {
    try container.registerLaunch(of: "a", program: "false")
    let slot = try container.storage.slot(.system, "wake.a")
    for failed in [Int64.max, .min, -1] {
      let record: PropertyListValue = [
        "id": "0123456789abcdef", "started": 1, "by": "somebody", "program": "false",
        "failed": .integer(failed), "failure": "it failed", "ended": 1,
      ]
      try slot.change("write") { _ in .put(try BinaryEncoder().encode(record)) }
      let error = try failure { try container.peer("a").wake(within: .seconds(20)) }
      #expect(error.code == .unreachable)
    }
  }

  // MARK: Sizes

  /// A file may state a size larger than any disk, and so may a second file.
  @Test func filesOfAnySizeAreCounted() throws {
    guard let disk = try TestFileSystem.make(.memory, for: "files of any size") else { return }
    func adjust(_ options: inout Options) {
      options.mailbox.maximumQueuedMessages = 4
      options.mailbox.maximumReceiptBytes = 4096
    }
    var options = Options()
    adjust(&options)
    let container = try SharedContainer(directory: disk.path + "/c", options: options)
    func makeHuge(_ path: String) throws {
      let file = try Descriptor.open(
        path: "\(container.directory)/members/\(path)", [.writeOnly, .create], mode: 0o600)
      try file.truncate(to: .max)
    }
    let (phone, watch) = (try container.join(as: "phone"), try container.join(as: "watch"))
    // Huge files in an inbox that is full.
    let soon = SendOptions.quick { $0.timeToLive = .zero }
    try container.peer("watch").send(1, soon)
    let inbox = try Descriptor.open(path: container.directory + "/members/watch/inbox", [.readOnly])
    let form = try #require(try inbox.names().first)
    for letter in "abc" {
      try makeHuge("watch/inbox/\(form.prefix(27))forged\(letter),")
    }
    let sent = try phone.peer("watch").send(2, .quick())
    for name in try inbox.names() where name.contains("forged") { try inbox.unlink(name) }
    // Huge files among the pending outcomes of a sender.
    for letter in "ab" {
      try makeHuge("phone/receipts/\(form.prefix(27))forged\(letter),phone.ok")
    }
    let receiving = try watch.receive { _ in }
    #expect(sent.waitForEnd(until: .now + patience) == .delivered)
    receiving.stop()
    // Huge files before a request, to a member that does not read its requests.
    let clock = try Running(.respond(container.directory, "clock"))
    let incarnation = try eventually("it has joined") {
      try clock.output.split(separator: "\n").first.map(String.init)
    }
    try clock.child.send(.stop)
    try clock.waitUntilStopped()
    let zeros = String(repeating: "0", count: 36)
    for letter in "ab" {
      let id = zeros.prefix(15) + String(letter)
      try makeHuge(
        "clock/live/\(incarnation)/\(zeros.prefix(20)),q,\(id),7\(zeros.prefix(15))")
    }
    let error = try failure { try phone.peer("clock").sendImmediately(1) }
    #expect(error.code == .full)
  }

  // MARK: Versions

  @Test func afterTheLastVersionItGoesOn() throws {
    let channel = container.channel("c", of: Int.self)
    for version in [Int.max - 2, .max - 1, .max, .min, 0] {
      let list: PropertyListValue = [
        "version": .integer(Int64(version)), "sent": .date(Date()), "from": "", "value": 1,
      ]
      try channel.put(0)
      try meeting.overwrite(
        "channels/c/value.plist", try BinaryEncoder().encode(list))
      for number in 1...3 {
        try channel.put(number)
        #expect(try channel.value == number)
        #expect(try meeting.another().channel("c", of: Int.self).value == number)
      }
      try channel.update { $0? += 1 }
      #expect(try channel.value == 4)
    }
  }

  /// The clock may show less than at the time when the lost versions were assigned.
  @Test func noVersionComesTwiceWhenTheClockWasSetBack() throws {
    let container = try meeting.another { $0.environment.sinceEpoch = { 1_000 } }
    let channel = container.channel("c", of: Int.self)
    let kept = try channel.put(1, durability: .power)
    let lost = try channel.put(2, durability: .power)
    try meeting.overwrite("channels/c/value.plist", [1, 2, 3])
    #expect(try #require(try channel.metadata).version == kept)
    #expect(try channel.put(3) > lost + 999_000)
  }

  /// No process reaches such a version by counting: another tool has written it.
  @Test func anImpossibleRemovedVersionIsIgnored() throws {
    let clock = { Int(ContainerOptions().environment.sinceEpoch() / 1000) }
    let slot = try container.storage.slot(.system, "removed")
    for (number, version) in [1 << 62, (1 << 62) + 1, .max, -1, .min].enumerated() {
      let record: PropertyListValue = ["version": .integer(Int64(version))]
      try slot.change("write") { _ in .put(try BinaryEncoder().encode(record)) }
      let before = clock()
      let first = try meeting.another().channel("c\(number)", of: Int.self).put(1)
      if version == 1 << 62 {
        #expect(first == version + 1)
      } else {
        #expect((before...clock()).contains(first), "after \(version): \(first)")
      }
    }
  }

  @Test func aFileThatIsTooLargeIsReplaced() throws {
    let channel = container.channel("c", of: String.self)
    try channel.put(String(repeating: "x", count: 3000))
    let tight = try meeting.another { $0.maximumValueBytes = 1000 }
    let small = tight.channel("c", of: String.self)
    #expect(try failure { _ = try small.value }.code == .tooLarge)
    #expect(try failure { try small.update { $0 = "y" } }.code == .tooLarge)
    let other = tight.channel("d", of: String.self)
    let error = try failure { try tight.update(small, other) { $0 = $1 } }
    #expect(error.code == .tooLarge && error.subject == "c")
    #expect(try channel.value?.count == 3000, "an update replaces nothing that it has not read")
    try small.put("y")
    #expect(try small.value == "y")
    #expect(try channel.value == "y")
    try channel.put(String(repeating: "x", count: 3000))
    try small.clear()
    #expect(try channel.value == nil)
  }
}

extension PropertyListValue {
  fileprivate var isNumber: Bool {
    switch self {
    case .integer, .unsigned, .real, .date: true
    default: false
    }
  }
}
