import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Requests on a full disk, and foreign files in `live/`.
@Suite(.blocking) struct RequestTroubleTests {
  private let meeting: Meeting
  private let watch: Member
  private let phone: Member
  private let responding: Subscription
  /// The faults under which each reply is sent.
  private let rules = Monitor<[FaultRule]>([])

  init() throws {
    meeting = try Meeting { $0.youth = .zero }
    watch = try meeting.container.join(as: "watch")
    phone = try meeting.another().join(as: "phone")
    let rules = rules
    responding = watch.respond(toKind: "Int") { request in
      FaultPoints.with(rules.withLock { $0 }) {
        do {
          try request.reply(try request.value(as: Int.self) * 2)
        } catch {
          request.refuse("\(error)")
        }
      }
    }
  }

  private func ask(_ number: Int, within timeout: Duration = .seconds(20)) throws -> Int {
    try phone.peer("watch").request(number, as: Int.self, within: timeout)
  }

  private func folder(of member: Member) throws -> Descriptor {
    try Descriptor.open(
      path: "\(meeting.path)/members/\(member.name)/live/\(member.incarnation)",
      [.readOnly, .directory])
  }

  private func staged() throws -> [String] {
    try Descriptor.open(path: meeting.path + "/staging", [.readOnly, .directory]).names()
  }

  // MARK: No space

  @Test(arguments: [Call.open, .write, .rename])
  func aQuestionThatHasNoRoomIsToldAtOnce(_ call: Call) throws {
    let path = call == .rename ? "live/" : "staging/"
    let rule = FaultRule(call, path: path, persistent: true, .fail(.noSpace))
    try FaultPoints.with([rule]) {
      let begin = Instant.now
      #expect(try failure { _ = try ask(1) }.code == .full)
      let send = try failure { try phone.peer("watch").sendImmediately(1) }
      #expect(send.code == .full)
      #expect(Instant.now - begin < .seconds(10))
    }
    #expect(try staged() == [])
    #expect(try folder(of: watch).names() == [])
    #expect(try ask(2) == 4)
  }

  /// The deadline passes while the request is written, and then its rename fails: the first of the
  /// two outcomes counts.
  @Test func aQuestionEndsOnceThoughItCannotBePutEither() throws {
    let rules = [
      FaultRule(.write, path: "staging/", .delay(milliseconds: 200)),
      FaultRule(.rename, path: "live/", .fail(.noSpace)),
    ]
    try FaultPoints.with(rules) {
      let error = try failure { _ = try ask(1, within: .milliseconds(20)) }
      #expect(error.code == .timedOut)
    }
    #expect(try staged() == [])
    #expect(try ask(2) == 4)
  }

  /// A suspended peer would find the request: a request whose file arrives when its requester no
  /// longer waits, and a request whose file is there until the deadline.
  @Test func aQuestionWhoseDeadlineHasPassedIsTakenBack() throws {
    let clock = try Running(.respond(meeting.path, "clock"))
    let incarnation = try eventually("it has joined") {
      try clock.output.split(separator: "\n").first.map(String.init)
    }
    try clock.child.send(.stop)
    try clock.waitUntilStopped()
    let folder = try Descriptor.open(
      path: "\(meeting.path)/members/clock/live/\(incarnation)", [.readOnly, .directory])
    let put = Heard<String>()
    let watch = try Watcher.shared.watch(folder, .movedTo) { signal in
      if case .changed(let names) = signal { for name in names { put.add(name) } }
    }
    let peer = phone.peer("clock")
    let late = FaultRule(.write, path: "staging/", .delay(milliseconds: 200))
    for (count, rules) in [(1, [late]), (2, [])] {
      _ = try FaultPoints.with(rules) {
        let error = try failure {
          _ = try peer.request(1, as: Int.self, within: .milliseconds(20))
        }
        #expect(error.code == .timedOut)
      }
      #expect(try folder.names() == [])
      try put.wait("it lay there") { $0.count == count }
    }
    watch.stop()
    try clock.child.send(.go)
    #expect(try peer.request(2, as: Int.self) == 4)
    #expect(try clock.output.split(separator: "\n").dropFirst() == ["question 2"])
  }

  /// A reply that could not be sent does not count as a reply.
  @Test func anAnswerThatHasNoRoomOnceIsRefused() throws {
    rules.withLock { $0 = [FaultRule(.write, .fail(.noSpace))] }
    let error = try failure { _ = try ask(1) }
    #expect(error.code == .rejected)
    #expect(error.reason.contains("no space left"))
    rules.withLock { $0 = [] }
    #expect(try ask(2) == 4)
    #expect(try staged() == [])
  }

  @Test func anAnswerThatHasNoRoomForLongIsATimeout() throws {
    rules.withLock { $0 = [FaultRule(.write, persistent: true, .fail(.noSpace))] }
    #expect(try failure { _ = try ask(1, within: .milliseconds(300)) }.code == .timedOut)
    rules.withLock { $0 = [] }
    #expect(try ask(2) == 4)
    #expect(try staged() == [])
    #expect(try folder(of: watch).names() == [])
  }

  // MARK: Yes and no

  /// The calls that send a yes or no to a requester, under the given faults.
  private func words(
    _ rules: [FaultRule] = [], _ ask: (Peer) throws -> Void
  ) throws -> [String] {
    let calls = Monitor<[String]>([])
    let saying = watch.respond(toKind: "word") { request in
      let made = FaultPoints.with(rules) {
        _ = try? request.reply((try? request.value(as: Bool.self)) ?? false)
      }
      calls.withLock { $0 += made }
    }
    try ask(phone.peer("watch"))
    saying.stop()
    return calls.withLock { $0 }
  }

  /// Nothing is written, nor read.
  @Test func aWordIsTheNameOfAnEmptyFile() throws {
    let heard = Monitor<[Bool]>([])
    let calls = try words { peer in
      for word in [true, false, true] {
        let answer = try peer.request(word, as: Bool.self, kind: "word", within: patience)
        heard.withLock { $0.append(answer) }
      }
    }
    #expect(heard.withLock { $0 } == [true, false, true])
    #expect(calls.filter { $0.hasPrefix("mknod") }.count == 3)
    let writing = calls.filter { call in
      ["write", "rename", "flock"].contains { call.hasPrefix($0) }
    }
    #expect(writing == [])
    #expect(try folder(of: phone).names() == [])
  }

  /// A file system may not know the call `mknod`, and a sandbox may refuse the call.
  @Test(arguments: [Errno.notPermitted, .notImplemented, .accessDenied])
  func aWordThatCannotBeSaidSoIsWritten(_ error: Errno) throws {
    let calls = try words([FaultRule(.mknod, persistent: true, .fail(error))]) { peer in
      for word in [true, false] {
        let answer = try peer.request(word, as: Bool.self, kind: "word", within: patience)
        #expect(answer == word)
      }
    }
    #expect(calls.filter { $0.hasPrefix("rename") }.count == 2)
  }

  /// For the requester, the empty file is the same as a written reply.
  @Test func aWordIsNoAnswerOfAnotherType() throws {
    _ = try words { peer in
      let error = try failure {
        _ = try peer.request(true, as: String.self, kind: "word", within: patience)
      }
      #expect(error.code != .timedOut, "\(error)")
      let list = try peer.request(
        true, as: PropertyListValue.self, kind: "word", within: patience)
      #expect(list == true)
      let perhaps = try peer.request(true, as: Bool?.self, kind: "word", within: patience)
      #expect(perhaps == true)
    }
    #expect(try ask(2) == 4)
  }

  // MARK: Files that cannot be read for a moment

  @Test(arguments: ["open~,q,@1:before:fail=EMFILE", "unlink~,q,@1:before:fail=ENOSPC"])
  func aQuestionThatCannotBeTakenNowIsAnsweredLater(_ fault: String) throws {
    let clock = try Running(
      .respond(meeting.path, "clock"), environment: ["WORMHOLE_FAULTS=\(fault)"])
    _ = try eventually("it has joined") { try clock.output.split(separator: "\n").first }
    #expect(try phone.peer("clock").request(2, as: Int.self, within: .seconds(20)) == 4)
    #expect(try clock.output.split(separator: "\n").dropFirst() == ["question 2"])
  }

  @Test func anAnswerThatCannotBeReadNowComesLater() throws {
    let asker = try Running(
      .request(meeting.path, of: "watch", 21...21, as: "tv", milliseconds: 20_000),
      environment: ["WORMHOLE_FAULTS=open~,a,@1:before:fail=EMFILE"])
    let outcome = try asker.outcome()
    #expect(outcome.status == .exited(0))
    #expect(outcome.output == "asking\ndone\n")
  }

  /// No other process reads the reply, and the request has ended when the file is found again.
  @Test func anAnswerWhoseFileCannotBeRemovedCounts() throws {
    let asker = try Running(
      .request(meeting.path, of: "watch", 21...21, as: "tv", milliseconds: 20_000),
      environment: ["WORMHOLE_FAULTS=unlink~,a,+:before:fail=ENOSPC"])
    let outcome = try asker.outcome()
    #expect(outcome.status == .exited(0))
    #expect(outcome.output == "asking\ndone\n")
  }

  // MARK: Foreign files

  /// A name in the library's form, for a file that arrives now.
  private func name(_ letter: String, _ id: Int) -> String {
    let digits = String(id, radix: 16)
    return String(repeating: "0", count: 20) + ",\(letter),"
      + String(repeating: "0", count: 16 - digits.count) + digits
  }

  private func place(_ bytes: [UInt8], in folder: borrowing Descriptor, as name: String) throws {
    let staging = try Descriptor.open(path: meeting.folder.path, [.readOnly, .directory])
    let file = try staging.open("made", [.writeOnly, .create, .exclusive], mode: 0o600)
    try file.writeFully(bytes)
    try staging.rename("made", to: folder, name)
  }

  private func question(_ changed: [String: PropertyListValue?]) throws -> [UInt8] {
    var entries: [String: PropertyListValue] = [
      "from": "phone", "incarnation": .string(phone.incarnation.rawValue), "kind": "Int",
      "deadline": .integer(.max), "value": 7,
    ]
    for (key, value) in changed { entries[key] = value }
    return try BinaryEncoder().encode(PropertyListValue.dictionary(entries))
  }

  /// Contents that a malicious or a faulty program can put there.
  private var hostile: [[UInt8]] {
    get throws {
      let sound = try question([:])
      var damaged = sound
      damaged[10] ^= 1
      let fields: [[String: PropertyListValue?]] = [
        ["from": nil], ["from": "../watch"], ["from": "~../../x"], ["from": ""], ["from": 7],
        ["incarnation": "../../../../tmp/"], ["incarnation": ""], ["incarnation": [1]],
        ["incarnation": "0123456789abcdef"], ["kind": 3], ["kind": "None"],
        ["deadline": "never"], ["deadline": 0], ["deadline": -1], ["value": nil],
        ["value": "seven"], ["value": ["a": [1, 2]]],
      ]
      return [
        [], [0], Array("bplist00".utf8), Array("words".utf8), Array(sound.dropLast()),
        Array(sound.prefix(20)), damaged, [UInt8](repeating: 0xff, count: 100_000),
      ] + (try fields.map(question))
    }
  }

  @Test func nothingThatLiesThereHoldsThemUp() throws {
    let own = try folder(of: phone)
    let others = try folder(of: watch)
    for (number, bytes) in try hostile.enumerated() {
      for letter in ["q", "m", "a", "y", "n"] {
        try place(bytes, in: others, as: name(letter, number))
        try place(bytes, in: own, as: name(letter, number))
      }
      #expect(try ask(number) == number * 2)
    }
    try eventually("all is read") { try others.names().isEmpty && own.names().isEmpty }
  }

  @Test func whatIsNoFileIsLeftAlone() throws {
    let others = try folder(of: watch)
    let elsewhere = try Descriptor.open(path: meeting.folder.path, [.readOnly, .directory])
    try elsewhere.write("precious", to: "mine")
    let letters = ["a", "m", "n", "q", "y"]
    for letter in letters {
      try elsewhere.makeDirectory("d", mode: 0o700)
      try elsewhere.rename("d", to: others, name(letter, 1))
      #expect(try run("mkfifo", [meeting.folder.path + "/f"]).status == .exited(0))
      try elsewhere.rename("f", to: others, name(letter, 2))
      try elsewhere.makeSymbolicLink("l", to: "\(meeting.folder.path)/mine")
      try elsewhere.rename("l", to: others, name(letter, 3))
      try place([1], in: others, as: "foreign \(letter)")
      #expect(try ask(5) == 10)
    }
    let kept = letters.map { "foreign \($0)" } + letters.map { name($0, 1) }
    try eventually("the rest is dropped") { try others.names().sorted() == kept.sorted() }
    #expect(try meeting.folder.read("mine") == "precious")
    // Leaving and joining again removes folders with an incarnation's name, with all their content.
    watch.leave()
    let live = try Descriptor.open(path: "\(meeting.path)/members/watch/live", [.readOnly])
    #expect(try live.names() == [])
    try live.open("foreign", [.writeOnly, .create], mode: 0o600).write("mine")
    try meeting.another().join(as: "watch").leave()
    #expect(try live.names() == ["foreign"])
  }

  /// A reply of another form is an error for its own requester, and for no other process.
  @Test func anAnswerOfAnotherFormIsAnError() throws {
    let other = try meeting.another().join(as: "clock")
    let own = try folder(of: phone)
    let kept = Heard<Request>()
    let responding = other.respond(toKind: nil) { kept.add($0) }
    let files = try folder(of: other)
    let cut: PropertyListValue = ["error": "no connection", "unreachable": .boolean(true)]
    let refusal: PropertyListValue = ["error": "no", "unreachable": .boolean(false)]
    let answers: [PropertyListValue] = [
      ["value": "text"], [1], ["error": 3], [:], ["error": "no", "unreachable": 1], cut, refusal,
    ]
    for answer in answers {
      let peer = phone.peer("clock")
      let end = Monitor<Result<Int, any Error>?>(nil)
      // The request's number is known from its file's name, before the request is read.
      let watch = try Watcher.shared.watch(files, .movedTo) { signal in
        guard case .changed(let names) = signal, let name = names.first else { return }
        let id = name.dropFirst(23).prefix(16)
        let bytes = (try? BinaryEncoder().encode(answer)) ?? []
        try? self.place(bytes, in: own, as: String(repeating: "0", count: 20) + ",a,\(id)")
      }
      let thread = try Thread("asking") {
        let result = Result { try peer.request(1, as: Int.self) }
        end.signal { $0 = result }
      }
      let result = end.wait(until: .now + patience) { $0 }
      thread.join()
      watch.stop()
      let error = try failure { _ = try result?.get() }
      #expect(error.code != .timedOut, "\(answer): \(error)")
      #expect((error.code == .unreachable) == (answer == cut), "\(answer): \(error)")
      #expect((error.code == .rejected) == (answer == refusal), "\(answer): \(error)")
    }
    responding.stop()
    #expect(try ask(3) == 6)
  }
}

extension Descriptor {
  fileprivate func write(_ text: String, to name: String) throws {
    try open(name, [.writeOnly, .create], mode: 0o600).write(text)
  }
}
