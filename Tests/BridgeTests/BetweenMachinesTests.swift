import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// What the article *Between machines* prints works: its configurations of servers, its commands,
/// and its rights of a machine, no more and no less.
@Suite(.blocking, .notSanitized("it runs other programs")) struct BetweenMachinesTests {
  /// No block of the article is left out of these tests.
  @Test func everyBlockIsRun() throws {
    guard let article = try PrintedArticle.open(for: "the article 'Between machines'") else {
      return
    }
    #expect(
      article.marks == [
        "no mark", "try: token", "try.conf", "try: message", "certificate", "three: certificates",
        "server.conf", "users.conf", "leaf.conf", "machine: name", "operator: setup",
        "machine: run", "wormhole-bridge.service", "rights: command", "rights",
      ])
    let picture = try article.text("no mark")
    #expect(picture.contains("machine A") && !picture.contains("$ "), "the picture alone")
  }

  @Test func theTrialWithOneServer() throws {
    guard let article = try PrintedArticle.open(for: "the article's one server") else { return }
    let port = try ServerProgram.freePort()
    try article.write("try.conf", [("4222", "\(port)")])
    let outcome = try article.run(
      article.commands("try: token") + article.commands("try: message", port: port))
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.output.contains("hello\n"))
    #expect(outcome.output.contains("of group 'trial'"))
  }

  /// The command and the article have the same list.
  @Test func theCommandPrintsTheRightsOfTheArticle() throws {
    guard let article = try PrintedArticle.open(for: "the article's rights") else { return }
    let outcome = try article.run(article.commands("rights: command"))
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(try outcome.output == article.text("rights"))
  }

  @Test func threeServersAndMachinesWithThePrintedRights() throws {
    guard let hub = try PrintedHub.start(for: "the article's three servers") else { return }
    try send(from: "m1", to: "m2", hub)
    try send(from: "m2", to: "m1", hub)
    try subscriptionsAreRefused(hub)
    try wordsOfOthersAreRefused(hub)
    try hub.stopBridges()
    try requestsAreRefused(hub)
  }

  /// A message goes from one machine to the other, and its outcome goes back.
  private func send(from sender: String, to receiver: String, _ hub: PrintedHub) throws {
    let name = "reader of \(receiver)"
    let receiving = try hub.article.start(
      "wormhole --group cinema receive --as '\(name)' --count 1 --timeout 90", root: receiver)
    let outcome = try hub.article.run(
      ["wormhole --group cinema send hello --to '\(name)' --wait --timeout 60"], root: sender)
    let errors = try hub.bridges.mapValues { try $0.errors }
    #expect(outcome.status == .exited(0), "\(outcome.errors) \(errors)")
    #expect(try receiving.outcome(within: .seconds(60)).output == "hello\n")
  }

  private func names(_ hub: PrintedHub) throws -> (own: String, other: String) {
    (try #require(hub.names["m1"]), try #require(hub.names["m2"]))
  }

  /// A machine receives nothing that is for another one.
  private func subscriptionsAreRefused(_ hub: PrintedHub) throws {
    let (own, other) = try names(hub)
    let reader = try hub.connect(to: "m1")
    for (number, subject) in ["whm.\(other).>", "_INBOX.\(other).>", "whf.>", "whm.\(own).*.*"]
      .enumerated()
    {
      try reader.write("SUB \(subject) \(number + 1)")
    }
    // The leaf has read the subscriptions when it replies.
    _ = try messages(reader)
    let sender = try hub.connect(to: PrintedHub.administrator)
    let end = Instant.now + .seconds(60)
    var received: [String] = []
    while !received.contains("whm.\(own).confirm.end"), Instant.now < end {
      for subject in [
        "whm.\(other).confirm.x", "_INBOX.\(other).x", "whf.x", "whm.\(own).confirm.end",
      ] {
        try sender.write("PUB \(subject) 0\r\n")
      }
      _ = try messages(sender)
      received += try messages(reader)
    }
    #expect(received.contains("whm.\(own).confirm.end"))
    #expect(received.allSatisfy { $0.hasPrefix("whm.\(own).") }, "\(received)")
  }

  /// The subjects of the messages that precede the reply to a ping.
  private func messages(_ connection: TestConnection) throws -> [String] {
    try connection.write("PING")
    var subjects: [String] = []
    while true {
      let line = try connection.line()
      if line == "PONG" { return subjects }
      if line == "PING" { try connection.write("PONG") }
      let words = line.split(separator: " ")
      if words.first == "MSG", words.count > 1 { subjects.append(String(words[1])) }
    }
  }

  private func wordsOfOthersAreRefused(_ hub: PrintedHub) throws {
    let (own, other) = try names(hub)
    let machine = try hub.connect(to: "m1")
    #expect(try machine.request("whm.\(other).ask.\(other)", "x", inbox: "_INBOX.\(own)") == nil)
  }

  /// The operator may make all these requests, and a machine none.
  private func requestsAreRefused(_ hub: PrintedHub) throws {
    let (own, other) = try names(hub)
    let api = "$JS.hub.API"
    let reader = "whf.0.\(other).cinema.*"
    let requests = [
      // Sending as another machine, or in another group.
      ("whf.0.\(own).cinema.\(other)", "x"), ("whf.0.\(other).elsewhere.\(own)", "x"),
      ("whs.0.cinema.x.\(other)", "x"), ("whs.0.elsewhere.m.bob", "x"),
      // Reading the bundles of another machine.
      (
        "\(api).CONSUMER.CREATE.WHF_0.c.\(reader)",
        #"{"stream_name":"WHF_0","config":{"name":"c","filter_subject":"\#(reader)"}}"#
      ),
      ("\(api).CONSUMER.NAMES.WHF_0", ""), ("\(api).STREAM.MSG.GET.WHF_0", #"{"seq":1}"#),
      // Removing bundles, and changing streams.
      ("\(api).STREAM.NAMES", ""), ("\(api).STREAM.CREATE.X", #"{"name":"X","subjects":["x"]}"#),
      ("\(api).STREAM.PURGE.WHF_0", ""), ("whs.0.deployment", "x"),
      ("\(api).STREAM.DELETE.WHF_0", ""),
    ]
    // The subject's own filter does not permit another one in the body.
    let mixed = try hub.connect(to: "m1").request(
      "\(api).CONSUMER.CREATE.WHF_0.c.whf.0.\(own).cinema.*", requests[4].1,
      inbox: "_INBOX.\(own)")
    #expect(mixed?.contains("error") == true, "\(mixed ?? "no reply")")
    for (subject, body) in requests {
      let (machine, administrator) = (
        try hub.connect(to: "m1").request(subject, body, inbox: "_INBOX.\(own)"),
        try hub.connect(to: PrintedHub.administrator).request(subject, body)
      )
      #expect(machine == nil, "\(subject)")
      #expect(administrator != nil, "\(subject)")
    }
  }
}
