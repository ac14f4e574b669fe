import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeCinemaTime
import WormholeSyscalls

/// The images of tickets, from the phone's app to the watch's.
@Suite(.blocking) struct ImageTests {
  @Test func theWatchGetsTheImagesOfTicketsThatEitherSideHasBought() throws {
    let cinema = try Cinema()
    let (phone, watch) = (try cinema.app(.phone), try cinema.app(.watch))
    try phone.type("buy 34340")
    try watch.type("buy 858555")
    try watch.shows(tickets: [34340, 858555], images: [34340, 858555])
    try phone.shows(tickets: [34340, 858555], images: [34340, 858555])
    for movie in [34340, 858555] {
      let code = PNG(try QRCode(Movie.find(movie)!.ticketText)).bytes
      #expect(cinema.album(.watch).image(of: movie).map(Array.init) == code)
      #expect(cinema.album(.phone).image(of: movie).map(Array.init) == code)
    }
  }

  @Test(arguments: Role.allCases)
  func aReturnedTicketLosesItsImageOnBothSides(_ returning: Role) throws {
    let cinema = try Cinema()
    let (phone, watch) = (try cinema.app(.phone), try cinema.app(.watch))
    try phone.type("buy 34340")
    try phone.type("buy 31413")
    try watch.shows(tickets: [34340, 31413], images: [34340, 31413])
    try (returning == .phone ? phone : watch).type("return 34340")
    try watch.shows(tickets: [31413], images: [31413])
    try phone.shows(tickets: [31413], images: [31413])
    for role in Role.allCases { #expect(try cinema.files(role) == ["31413.png"]) }
    // After a second purchase the image arrives again.
    let count = watch.count
    try watch.type("buy 34340")
    try watch.shows(after: count, tickets: [31413, 34340], images: [31413, 34340])
  }

  /// The phone is killed after the request arrived and before it has sent an image.
  @Test func ifThePhoneIsKilledBeforeItSendsTheImageComesAfterItsRestart() throws {
    let cinema = try Cinema()
    try cinema.office(.watch).sell(34340, to: "me")
    let watch = try cinema.app(.watch)
    try watch.shows(tickets: [34340], images: [])
    // The phone dies at the creation of the file that it would send.
    let victim = try cinema.app(.phone, faults: "any~staging@1:before:kill")
    #expect(try victim.wait() == .signalled(9))
    #expect(cinema.album(.watch).movies.isEmpty)
    let phone = try cinema.app(.phone)
    try watch.shows(tickets: [34340], images: [34340])
    phone.end(.kill)
  }

  @Test func whatIsLeftOfAnImageIsRemovedWhenTheAppStarts() throws {
    let cinema = try Cinema()
    try cinema.office(.phone).sell(34340, to: "me")
    for role in Role.allCases {
      let album = cinema.album(role)
      try album.prepare()
      let name = "office.\(role.rawValue)"
      let folder = try cinema.folder.descriptor.open(name, [.readOnly, .directory])
      for file in [".dat.nosync12", "77788.png", "notes.txt"] {
        try folder.open(file, [.writeOnly, .create], mode: 0o600).write("left")
      }
    }
    let (phone, watch) = (try cinema.app(.phone), try cinema.app(.watch))
    try phone.shows(tickets: [34340], images: [34340])
    try watch.shows(tickets: [34340], images: [34340])
    for role in Role.allCases {
      try eventually("only what belongs there is left") {
        try cinema.files(role) == ["34340.png", "notes.txt"]
      }
    }
  }

  /// Another spelling of a film's number is not the name of its image, which no call would find.
  @Test func aFileWithAnotherSpellingOfTheNumberIsNoImage() throws {
    let cinema = try Cinema()
    let album = cinema.album(.watch)
    try album.prepare()
    let folder = try cinema.folder.descriptor.open("office.watch", [.readOnly, .directory])
    for file in ["+34340.png", "0031413.png", "77788.png"] {
      try folder.open(file, [.writeOnly, .create], mode: 0o600).write("image")
    }
    #expect(album.movies == [77788])
  }

  @Test func aWatchThatWasOffShowsTheFinalState() throws {
    let cinema = try Cinema()
    let phone = try cinema.app(.phone)
    try cinema.app(.watch).shows(tickets: [])
    for movie in [34340, 31413, 77788] { try phone.type("buy \(movie)") }
    try phone.type("return 31413")
    try phone.shows(tickets: [34340, 77788])
    let watch = try cinema.app(.watch)
    #expect(watch.lines.isEmpty || watch.lines[0].value?.numbers("tickets") == [34340, 77788])
    try watch.shows(tickets: [34340, 77788], images: [34340, 77788])
    #expect(watch.lines[0].value?.numbers("tickets") == [34340, 77788])
  }

  /// Neither app runs; the watch starts the phone's app when it needs an image.
  @Test func thePhoneIsStartedWhenTheWatchNeedsAnImage() throws {
    let cinema = try Cinema()
    #expect(try cinema.run(.phone, "buy", "34340").status == .exited(0))
    let without = try cinema.run(.watch, "show", "34340", "--png", "-")
    #expect(without.status == .exited(69))
    #expect(without.errors.contains("cinematime install"))
    #expect(try cinema.run(.phone, "install").status == .exited(0))
    defer { endPhone(cinema) }
    let watch = try cinema.app(.watch)
    try watch.shows(tickets: [34340], images: [34340])
    watch.end(.kill)
    try cinema.album(.watch).remove(34340)
    let path = cinema.folder.path + "/ticket.png"
    let shown = try cinema.run(.watch, "show", "34340", "--png", path)
    #expect(shown.status == .exited(0), "\(shown.errors)")
    let code = PNG(try QRCode(Movie.find(34340)!.ticketText)).bytes
    #expect(try cinema.folder.bytes(of: "ticket.png") == code)
  }

  /// The app that was started is a child of no process here.
  private func endPhone(_ cinema: Cinema) {
    let peer = cinema.container.peer("phone")
    guard let profile = try? peer.profile, profile.isRunning else { return }
    try? Processes.send(.kill, to: profile.processID)
    try? eventually("the phone ends") { try peer.reachability != .running }
  }

  /// The image cannot be stored: the watch requests it again, and nothing is dead-lettered.
  @Test func anImageThatCouldNotBeKeptIsAskedForAgain() throws {
    let cinema = try Cinema()
    try cinema.office(.watch).sell(34340, to: "me")
    let watch = try cinema.app(.watch, faults: "rename~34340.png@1:before:fail=ENOSPC")
    try eventually("it is asked for") { try cinema.container.peer("phone").queue.count == 1 }
    let phone = try cinema.app(.phone)
    #expect(throws: Never.self) { try watch.shows(tickets: [34340], images: [34340]) }
    #expect(try cinema.container.peer("watch").deadLetters.isEmpty)
    withExtendedLifetime(phone) {}
  }
}
