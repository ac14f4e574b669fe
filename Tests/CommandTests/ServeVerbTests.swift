import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSyscalls

/// `wormhole serve`: what its page receives, and who may ask.
@Suite(.blocking, .notSanitized("about what a command prints")) struct ServeVerbTests {
  /// Text that would be markup, a script, another line, or another direction.
  private static let hostile =
    "<b>tag</b><script>alert(1)</script>\"quote\" 'single' &amp; "
    + "\u{202E}turned\u{202C}\u{7}\n\u{2028}"

  @Test func everyPlaceOfTheContainerIsShown() throws {
    let page = try ServedPage()
    let container = page.container
    try container.channel("speed", of: Int.self).put(88)
    let member = try container.join(as: "till", info: ["room": "9"])
    try container.queue("jobs", of: String.self).send("one")
    try container.peer("till").send("two")
    let state = try page.state("all is shown") { state in
      let till = state.row("members", "till")
      let isJoined = till?["state"] == "running" && till?["info"] == "room=9"
      let areWaiting = ["jobs", "till"].allSatisfy { state.row("queues", $0)?["waiting"] == 1 }
      return isJoined && areWaiting && state.row("channels", "speed")?["value"] == "88"
    }
    #expect(state.row("channels", "speed")?["file"] == "channels/speed/value.plist")
    #expect(state.row("members", "till")?["state"] == "running")
    #expect(state.row("members", "till")?["info"] == "room=9")
    #expect(state.row("queues", "jobs")?["kind"] == "queue")
    #expect(state["allowsChanges"] == false)
    try container.lock("press").hold {
      // A lock is held a moment before it has the mark of its holder.
      let name = "process \(Processes.current), running"
      let held = try page.state("the lock") {
        $0.row("locks", "press")?["holder"]?.stringValue?.contains(name) == true
      }
      let holder = held.row("locks", "press")?["holder"]?.stringValue ?? ""
      #expect(holder.contains(name))
    }
    member.leave()
    let ended = try page.state("what has ended") { state in
      state.row("members", "till")?["state"] == "not running" && state.row("locks", "press") == nil
    }
    #expect(ended.events.contains("member till: not running"))
    #expect(ended.events.contains("lock press: free"))
  }

  /// The claims of a queue are in the directories of its workers.
  @Test func aMessageThatAWorkerHandlesIsShownAsClaimed() throws {
    let page = try ServedPage()
    let jobs = page.container.queue("jobs", of: String.self)
    try jobs.send("one")
    try page.state("the message waits") { $0.row("queues", "jobs")?["waiting"] == 1 }
    let worker = try jobs.callers(handlingDeadline: nil)
    defer { worker.stop() }
    let message = try #require(worker.next(until: .now + patience))
    // One rename makes a waiting message a claimed one, and the page reads in this order.
    let state = try page.state("no message waits") { $0.row("queues", "jobs")?["waiting"] == 0 }
    #expect(state.row("queues", "jobs")?["claimed"] == 1)
    try message.acknowledge()
    try page.state("no message is claimed") { $0.row("queues", "jobs")?["claimed"] == 0 }
  }

  /// A list that the system refuses is not an empty one.
  @Test func whatCannotBeReadIsNotShownAsEmpty() throws {
    let page = try ServedPage(
      environment: ["WORMHOLE_FAULTS=open~queues/b@1+:before:fail=EACCES"])
    for name in ["a", "b"] { try page.container.queue(name, of: Int.self).send(1) }
    let state = try page.state("both queues") {
      $0.row("queues", "a")?["waiting"] == 1 && $0.row("queues", "b") != nil
    }
    #expect(state.row("queues", "b")?["waiting"] == "?")
    #expect(state.row("queues", "b")?["dead"] == "?")
    let closed = try ServedPage(environment: ["WORMHOLE_FAULTS=open~queues@1+:before:fail=EACCES"])
    try closed.container.queue("a", of: Int.self).send(1)
    let refused = try closed.state("the refusal") {
      $0["queues"]?["refusal"]?.stringValue?.isEmpty == false
    }
    #expect(refused["queues"]?["refusal"]?.stringValue?.contains("cannot list") == true)
    #expect(refused["members"]?["refusal"] == "")
  }

  /// The stream brings a change without a question.
  @Test func aStreamGetsEachChange() throws {
    let page = try ServedPage()
    let stream = try WebConnection(port: page.port)
    try stream.ask(page.path + "events")
    #expect(try stream.reply().status == 200)
    let speed = page.container.channel("speed", of: Int.self)
    for value in 1...3 {
      try speed.put(value)
      let end = Instant.now + patience
      var seen: PropertyListValue = [:]
      while Instant.now < end, seen.row("channels", "speed")?["value"] != .string("\(value)") {
        seen = try JSONPropertyList.decode(Array(try stream.event().utf8))
      }
      #expect(seen.row("channels", "speed")?["version"] == .integer(Int64(value)))
    }
  }

  /// Names and values arrive as bounded text, without characters that move or hide others.
  @Test func hostileTextIsBoundedAndVisible() throws {
    let page = try ServedPage()
    let hostile = Self.hostile
    var options = Options()
    options.writerName = hostile
    let container = try SharedContainer(directory: page.container.directory, options: options)
    let short = "<b>\u{202E}'\"&\n"
    try container.channel(short, of: [String: [String]].self).put([hostile: [hostile]])
    try container.channel("large", of: String.self)
      .put(String(repeating: String(hostile.prefix(12)), count: (63 << 20) / 12))
    let member = try container.join(as: short, info: [hostile: hostile])
    defer { member.leave() }
    try container.queue(short, of: String.self).send(hostile)
    let bytes = try container.lock(short).hold {
      try page.bytes("all is shown") { state in
        let channels = state["channels"]?["rows"]?.arrayValue ?? []
        let areComplete = channels.count == 2 && channels.allSatisfy { $0["value"] != "" }
        return areComplete && state["locks"]?["rows"]?.arrayValue?.isEmpty == false
          && state["members"]?["rows"]?.arrayValue?.isEmpty == false
      }
    }
    #expect(bytes.utf8.count < 20_000)
    let wrong = bytes.unicodeScalars.filter {
      [.control, .format, .lineSeparator, .paragraphSeparator].contains(
        $0.properties.generalCategory)
    }
    #expect(wrong.isEmpty)
    #expect(bytes.contains("⟨U+202E⟩turned"))
    let large = try JSONPropertyList.decode(Array(bytes.utf8)).row("channels", "large")
    #expect(large?["value"]?.stringValue?.hasSuffix("bytes)") == true)
  }

  @Test func aLongListIsCut() throws {
    let page = try ServedPage()
    for number in 0..<230 {
      try page.container.channel("channel \(number)", of: Int.self).put(number)
    }
    try page.state("200 and 30") { state in
      state["channels"]?["rows"]?.arrayValue?.count == 200 && state["channels"]?["more"] == 30
    }
  }

  @Test func aChannelThatIsBeingChangedIsALock() throws {
    let page = try ServedPage()
    let film = page.container.channel("film", of: String.self)
    try film.put("M")
    try film.update(default: "") { value in
      try page.state("the lock") { $0.row("locks", "channel film") != nil }
      value = "Metropolis"
    }
    try page.state("the end of the lock") { $0.row("locks", "channel film") == nil }
  }

  /// A row that a new one pushes out of the list has not gone.
  @Test func aRowAfterTheLastOneShownIsNotReportedAsRemoved() throws {
    let page = try ServedPage()
    func send(to name: String) throws {
      try page.container.queue(name, of: Int.self).send(1)
    }
    for number in 100..<300 { try send(to: "queue \(number)") }
    try page.state("all 200") { $0["queues"]?["rows"]?.arrayValue?.count == 200 }
    try send(to: "another")
    let state = try page.state("one more") { state in
      state["queues"]?["more"] == 1
        && state.events.contains("queue another: 1 waiting, 0 claimed, 0 dead")
    }
    #expect(state.row("queues", "another") != nil && state.row("queues", "queue 299") == nil)
    #expect(!state.events.contains { $0.hasSuffix(": removed") }, "\(state.events)")
  }

  @Test func changesAreMadeOnlyIfAllowed() throws {
    for isAllowed in [false, true] {
      let page = try ServedPage(isAllowed ? ["--allow-changes"] : [])
      func post(_ body: String, _ headers: [String]) throws -> Int {
        let connection = try WebConnection(port: page.port)
        try connection.ask(page.path + "do", method: "POST", headers, body: body)
        return try connection.reply().status
      }
      let origin = "Origin: http://127.0.0.1:\(page.port)"
      let token = "X-Wormhole-Token: \(page.path.split(separator: "/")[0])"
      let put = #"{"action":"put","channel":"film","value":"<b>"}"#
      #expect(try post(put, [token]) == 403)
      #expect(try post(put, [origin]) == 403)
      #expect(try post(put, [origin, token]) == (isAllowed ? 200 : 403))
      let film = page.container.channel("film", of: String.self)
      #expect(try film.value == (isAllowed ? "<b>" : nil))
      #expect(try post("{}", [origin, token]) == (isAllowed ? 400 : 403))
      #expect(
        try post(#"{"action":"clear","channel":"film"}"#, [origin, token])
          == (isAllowed ? 200 : 403))
      #expect(try film.value == nil)
    }
  }

  @Test func onlyThisMachineIsServedUnlessAllowed() throws {
    let stage = try Stage()
    for place in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
      let outcome = try stage.run("wormhole serve --listen '\(place)'")
      #expect(outcome.status == .exited(64))
      #expect(outcome.errors.contains("add --allow-remote to permit that"))
    }
    let outcome = try stage.run("wormhole serve --listen cinema.example:80")
    #expect(outcome.errors.contains("not an address in digits and a port"))
    #expect(outcome.status == .exited(64))
    #expect(try stage.run("wormhole help serve").output.contains("in clear"))
  }
}

extension PropertyListValue {
  fileprivate func row(_ list: String, _ name: String) -> PropertyListValue? {
    self[list]?["rows"]?.arrayValue?.first { $0["name"] == .string(name) }
  }

  fileprivate var events: [String] {
    (self["events"]?.arrayValue ?? []).compactMap { $0["text"]?.stringValue }
  }
}
