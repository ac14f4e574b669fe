import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeCinemaTime
import WormholeSyscalls

/// Images where a file could not be read, stored or removed for a while.
@Suite(.blocking) struct ImageTroubleTests {
  private let cinema: Cinema

  init() throws { cinema = try Cinema() }

  private func app(
    _ role: Role, changed: @escaping @Sendable () -> Void = {}
  ) throws -> CinemaApp {
    try CinemaApp(
      try SharedContainer(directory: cinema.path), as: role, for: "me", changed: changed)
  }

  private func images(_ role: Role, are movies: Set<Int>) throws {
    try eventually("the \(role)'s images are \(movies)") { cinema.album(role).movies == movies }
  }

  /// Receives, as the given member, the request for an image from the app under test.
  private func takeRequest(_ member: Member) throws {
    let asked = Heard<[Int]>()
    let receiving = try member.receive(Payload.self) { payload, _ in
      asked.add(payload.qrCodes ?? [])
    }
    try asked.wait("a request") { $0.contains([34340]) }
    receiving.stop()
  }

  private func image() throws -> String {
    let album = Album(of: .phone, beside: cinema.folder.path + "/made")
    try album.store(Movie.find(34340)!.ticketImage(), of: 34340)
    return album.path(of: 34340)
  }

  private func move(_ name: String, to other: String) throws {
    try cinema.folder.descriptor.rename(name, to: cinema.folder.descriptor, other)
  }

  /// The watch could not know whether the image was wanted, and does not dead-letter it for that.
  @Test func anImageThatComesWhileTheBooksCannotBeReadIsAskedForAgain() throws {
    try cinema.office(.phone).sell(34340, to: "me")
    let watch = try app(.watch)
    defer { watch.stop() }
    let phone = try cinema.container.join(as: "phone")
    try takeRequest(phone)
    let place = try cinema.folder.descriptor.open(
      "office/channels/tickets", [.readOnly, .directory])
    let aside = try cinema.folder.descriptor.open("office", [.readOnly, .directory])
    try place.rename("value.plist", to: aside, "aside")
    try place.open("value.plist", [.writeOnly, .create], mode: 0o600).write("damaged")
    let sent = try phone.peer("watch").send(
      file: try image(), metadata: ImageNote(qrCodes: 34340))
    try eventually("it has come") { sent.status != nil }
    try aside.rename("aside", to: place, "value.plist")
    #expect(try cinema.container.peer("watch").deadLetters.isEmpty)
    phone.leave()
    let app = try app(.phone)
    defer { app.stop() }
    try images(.watch, are: [34340])
  }

  /// The watch notes a request once it is sent: a request noted before would never be made again.
  @Test func aRequestThatCouldNotBeSentIsMadeAgain() throws {
    var options = Options()
    options.mailbox.maximumQueuedMessages = 1
    let container = try SharedContainer(directory: cinema.path, options: options)
    let logged = Heard<String>()
    let watch = try CinemaApp(
      container, as: .watch, for: "me", log: { words in logged.add(words) })
    defer { watch.stop() }
    // The queue of the phone is full, and its app does not run.
    let visited = try SharedContainer(directory: cinema.path, options: options)
    try Connectivity(visiting: visited, as: .watch).send(Payload(), by: .guaranteed)
    try cinema.office(.phone).sell(34340, to: "me")
    try logged.wait("the failure") { $0.contains { $0.contains("the limit is 1") } }
    let phone = try app(.phone)
    defer { phone.stop() }
    #expect(throws: Never.self) { try images(.watch, are: [34340]) }
  }

  /// As with an image that was damaged on its way: the watch never sees the identity of the image.
  @Test func anImageThatDidNotComeIsSentAgain() throws {
    try cinema.office(.phone).sell(34340, to: "me")
    let phone = try app(.phone)
    defer { phone.stop() }
    let watch = try cinema.container.join(as: "watch")
    let heard = Heard<String>()
    let receiving = try watch.receive(kinds: ["ImageNote"]) { message in
      heard.add(message.id)
      if heard.all.first == message.id { throw Refusal.unknownMovie("34340") }
    }
    try watch.peer("phone").send(Payload(qrCodes: [34340]))
    try heard.wait("another") { Set($0).count == 2 }
    receiving.stop()
    watch.leave()
  }

  /// The watch that runs does not ask again: it sees neither the outcome nor the failure.
  @Test func anImageThatCouldNotBeSentAgainIsSentByTheNextApp() throws {
    try cinema.office(.phone).sell(34340, to: "me")
    let logged = Heard<String>()
    let phone = try CinemaApp(
      try SharedContainer(directory: cinema.path), as: .phone, for: "me",
      log: { words in logged.add(words) })
    defer { phone.stop() }
    let watch = try cinema.container.join(as: "watch")
    let heard = Heard<String>()
    let receiving = try watch.receive(kinds: ["ImageNote"]) { message in
      heard.add(message.id)
      guard heard.all.first == message.id else { return }
      if heard.count == 1 {
        try move("office.phone", to: "away")
        _ = try cinema.folder.descriptor.open("office.phone", [.writeOnly, .create], mode: 0o600)
      }
      throw Refusal.unknownMovie("34340")
    }
    try watch.peer("phone").send(Payload(qrCodes: [34340]))
    try logged.wait("a failure") { !$0.isEmpty }
    phone.stop()
    try cinema.folder.descriptor.unlink("office.phone")
    try move("away", to: "office.phone")
    #expect(Set(heard.all).count == 1)
    let next = try app(.phone)
    defer { next.stop() }
    try heard.wait("another") { Set($0).count == 2 }
    receiving.stop()
    watch.leave()
  }

  /// The watch would say that the phone makes no images for the customer.
  @Test func anImageThatCannotBeReadIsAnError() throws {
    try cinema.office(.phone).sell(34340, to: "me")
    let phone = try app(.phone)
    defer { phone.stop() }
    try images(.phone, are: [34340])
    let album = try cinema.folder.descriptor.open("office.phone", [.readOnly, .directory])
    try album.unlink("34340.png")
    try album.makeDirectory("34340.png", mode: 0o700)
    let watch = Connectivity(visiting: cinema.container, as: .watch)
    let error = #expect(throws: WormholeError.self) {
      try watch.send(Payload(qrCodes: [34340]), by: .failable)
    }
    #expect(error?.code == .rejected)
    try album.removeDirectory("34340.png")
  }

  @Test func theImageOfAReturnedTicketIsRemovedOnceThatCanBe() throws {
    try cinema.office(.phone).sell(34340, to: "me")
    let looks = Heard<Int>()
    let phone = try app(.phone) { looks.add(1) }
    defer { phone.stop() }
    try images(.phone, are: [34340])
    try move("office.phone", to: "away")
    _ = try cinema.folder.descriptor.open("office.phone", [.writeOnly, .create], mode: 0o600)
    let before = looks.count
    try cinema.office(.watch).takeBack(34340, from: "me")
    try looks.wait("it has looked") { $0.count > before }
    try cinema.folder.descriptor.unlink("office.phone")
    try move("away", to: "office.phone")
    try images(.phone, are: [])
  }

  @Test func anAppThatCouldNotBeginGivesItsNameBack() throws {
    _ = try cinema.folder.descriptor.open("office.watch", [.writeOnly, .create], mode: 0o600)
    let container = try SharedContainer(directory: cinema.path)
    #expect(throws: (any Error).self) { try CinemaApp(container, as: .watch, for: "me") }
    try cinema.folder.descriptor.unlink("office.watch")
    try CinemaApp(container, as: .watch, for: "me").stop()
  }
}
