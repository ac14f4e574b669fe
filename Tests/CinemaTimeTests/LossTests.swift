import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WatchConnectivity
import Wormhole
import WormholeCinemaTime
import WormholeSyscalls

/// The seven ways in which the sample loses data: shown in the sample's way of working, and
/// impossible in ours.
///
/// Both sides run in one process here, each with an instance of its own.
@Suite(.blocking) struct LossTests {
  /// Both sides in the sample's way.
  private final class Sample: Sendable {
    let cinema: Cinema
    let sessions: [WCSession]
    let connectivity: [SampleConnectivity]

    init(isActive: Bool = true) throws {
      let cinema = try Cinema()
      let sessions = Role.allCases.map { role in
        WCSession(role: role == .phone ? .phone : .watch, place: .directory(cinema.path))
      }
      self.cinema = cinema
      self.sessions = sessions
      connectivity = zip(Role.allCases, sessions).map { role, session in
        SampleConnectivity(session, as: role, beside: cinema.path)
      }
      if isActive { try waitUntilActive() }
    }

    func waitUntilActive() throws {
      for session in sessions {
        try eventually("the session is active") { session.activationState == .activated }
      }
    }

    deinit { for session in sessions { session.end() } }

    func office(_ role: Role) throws -> SampleOffice {
      SampleOffice(
        try SharedContainer(directory: cinema.path), as: role,
        over: connectivity[role == .phone ? 0 : 1])
    }

    /// Returns once the other side has received all earlier messages.
    func settle(_ from: Role) throws {
      let session = sessions[from == .phone ? 0 : 1]
      let answered = Monitor(false)
      try eventually("the other side is there") { session.isReachable }
      session.sendMessage(["fence": 1], replyHandler: { _ in answered.signal { $0 = true } })
      try #require(answered.wait(until: .now + patience) { $0 ? true : nil } ?? false)
      for one in sessions {
        try eventually("everything was sent") {
          one.outstandingFileTransfers.isEmpty && !one.hasContentPending
        }
      }
    }
  }

  /// Both sides in our way.
  private final class Ours: Sendable {
    let cinema: Cinema
    let apps: [CinemaApp]

    init() throws {
      let cinema = try Cinema()
      self.cinema = cinema
      apps = try Role.allCases.map { role in
        try CinemaApp(try SharedContainer(directory: cinema.path), as: role, for: "me")
      }
    }

    deinit { for app in apps { app.stop() } }

    func office(_ role: Role) throws -> BoxOffice { try cinema.office(role) }

    func images(_ role: Role, are movies: Set<Int>) throws {
      try eventually("the \(role)'s images are \(movies)") {
        cinema.album(role).movies == movies
      }
    }
  }

  // MARK: 1. Both buy at once

  /// Runs a body on each side in the same instant.
  private func atOnce(
    _ first: @escaping @Sendable () -> Void, _ second: @escaping @Sendable () -> Void
  )
    throws
  {
    let ready = Monitor(0)
    let threads = try [first, second].map { body in
      try Thread("side") {
        ready.signal { $0 += 1 }
        _ = ready.wait(until: .now + patience) { $0 == 2 ? true : nil }
        body()
      }
    }
    for thread in threads { thread.join() }
  }

  @Test func inTheSampleBothBuyAtOnceAndEachLosesItsOwn() throws {
    let sample = try Sample()
    let (phone, watch) = (try sample.office(.phone), try sample.office(.watch))
    var losses = 0
    // The two purchases need not meet the first time.
    for _ in 0..<100 where losses == 0 {
      try atOnce({ _ = try? phone.purchase(34340) }, { _ = try? watch.purchase(31413) })
      try sample.settle(.phone)
      try sample.settle(.watch)
      let both = Set(phone.purchased).intersection(watch.purchased)
      if both != [34340, 31413] { losses += 1 }
      for movie in phone.purchased { try phone.giveBack(movie) }
      try eventually("nothing is left") { watch.purchased.isEmpty && phone.purchased.isEmpty }
    }
    #expect(losses > 0)
  }

  @Test func withOursBothBuyAtOnceAndBothHaveBoth() throws {
    let ours = try Ours()
    let (phone, watch) = (try ours.office(.phone), try ours.office(.watch))
    for round in 0..<20 {
      try atOnce(
        { _ = try? phone.sell(34340, to: "guest \(round)") },
        { _ = try? watch.sell(31413, to: "guest \(round)") })
      for office in [phone, watch] {
        #expect(Set(try office.books.tickets(of: "guest \(round)").map(\.movie)) == [34340, 31413])
      }
    }
  }

  // MARK: 2. A context that arrives before the subscription

  @Test func inTheSampleAContextBeforeTheSubscriptionIsDropped() throws {
    let sample = try Sample()
    try sample.office(.phone).purchase(34340)
    try eventually("the watch's session has it") {
      sample.sessions[1].receivedApplicationContext["purchased"] as? [Int] == [34340]
    }
    try sample.settle(.phone)
    let watch = try sample.office(.watch)
    try sample.settle(.phone)
    #expect(watch.purchased.isEmpty)
  }

  @Test @MainActor func withOursWhoComesLateSeesWhatIsThere() throws {
    let ours = try Ours()
    try ours.office(.phone).sell(34340, to: "me")
    let watch = try TicketOffice(ours.cinema.container, as: .watch, for: "me")
    #expect(watch.purchased.map(\.id) == [34340])
  }

  // MARK: 3. A purchase before the connection exists

  @Test func inTheSampleAPurchaseBeforeTheActivationIsNeverSent() throws {
    let cinema = try Cinema()
    let session = WCSession(role: .phone, place: .directory(cinema.path))
    defer { session.end() }
    // Held until the purchase is made: a session cannot be activated under a name that is taken.
    let other = try cinema.container.join(as: "phone.watch")
    let connectivity = SampleConnectivity(session, as: .phone, beside: cinema.path)
    let phone = SampleOffice(cinema.container, as: .phone, over: connectivity)
    try phone.purchase(34340)
    other.leave()
    session.activate()
    try eventually("the session is active") {
      session.activate()
      return session.activationState == .activated
    }
    #expect(phone.purchased == [34340])
    #expect(session.applicationContext.isEmpty)
  }

  @Test func withOursAPurchaseNeedsNoConnection() throws {
    let cinema = try Cinema()
    try cinema.office(.phone).sell(34340, to: "me")
    let watch = try CinemaApp(cinema.container, as: .watch, for: "me")
    let phone = try CinemaApp(try SharedContainer(directory: cinema.path), as: .phone, for: "me")
    defer {
      watch.stop()
      phone.stop()
    }
    #expect(try cinema.office(.watch).books.tickets.map(\.movie) == [34340])
    try eventually("its image comes, too") { cinema.album(.watch).movies == [34340] }
  }

  // MARK: 4. A second request with the same content

  @Test func inTheSampleASecondRequestForAnImageIsNotDelivered() throws {
    let sample = try Sample()
    let (phone, watch) = (try sample.office(.phone), try sample.office(.watch))
    try watch.purchase(34340)
    let album = sample.cinema.album(.watch)
    try eventually("the image comes") { album.movies == [34340] }
    // The image is lost, and requested again with the same words as before.
    try album.remove(34340)
    watch.tellTheOtherSide()
    try sample.settle(.watch)
    #expect(album.movies.isEmpty)
    #expect(phone.purchased == [34340])
  }

  @Test func withOursASecondRequestIsDeliveredLikeTheFirst() throws {
    let ours = try Ours()
    try ours.office(.watch).sell(34340, to: "me")
    try ours.images(.watch, are: [34340])
    try ours.cinema.album(.watch).remove(34340)
    for delivery in [Delivery.guaranteed, .failable] {
      let watch = Connectivity(
        visiting: try SharedContainer(directory: ours.cinema.path), as: .watch)
      let reply = try watch.send(Payload(qrCodes: [34340]), by: delivery)
      if delivery == .failable { #expect(reply?.images.keys.sorted() == [34340]) }
    }
    try ours.images(.watch, are: [34340])
  }

  // MARK: 5. Images of the other side's purchases

  @Test func inTheSampleTheWatchNeverAsksForWhatThePhoneHasBought() throws {
    let sample = try Sample()
    let (phone, watch) = (try sample.office(.phone), try sample.office(.watch))
    try phone.purchase(34340)
    try eventually("the watch knows") { watch.purchased == [34340] }
    try sample.settle(.watch)
    #expect(sample.cinema.album(.watch).movies.isEmpty)
  }

  @Test func withOursTheWatchAsksForWhatThePhoneHasBought() throws {
    let ours = try Ours()
    try ours.office(.phone).sell(34340, to: "me")
    try ours.images(.watch, are: [34340])
  }

  // MARK: 6. Images of what was returned

  @Test func inTheSampleAReturnOnThePhoneLeavesTheImageOnTheWatch() throws {
    let sample = try Sample()
    let (phone, watch) = (try sample.office(.phone), try sample.office(.watch))
    try watch.purchase(34340)
    let album = sample.cinema.album(.watch)
    try eventually("the image comes") { album.movies == [34340] }
    try eventually("the phone knows") { phone.purchased == [34340] }
    try phone.giveBack(34340)
    try eventually("the watch knows") { watch.purchased.isEmpty }
    try sample.settle(.phone)
    #expect(album.movies == [34340])
  }

  @Test func withOursAReturnOnThePhoneTakesTheImageFromTheWatch() throws {
    let ours = try Ours()
    try ours.office(.watch).sell(34340, to: "me")
    try ours.images(.watch, are: [34340])
    try ours.images(.phone, are: [34340])
    try ours.office(.phone).takeBack(34340, from: "me")
    try ours.images(.watch, are: [])
    try ours.images(.phone, are: [])
  }

  /// The first failure, which has another reason, is no longer there.
  @Test func theSampleKeepsItsLatestHundredFailures() throws {
    let sample = try Sample()
    let (pairing, phone) = (try Pairing(directory: sample.cinema.path), sample.connectivity[0])
    try pairing.uninstall(.watch)
    try eventually("no app") { !sample.sessions[0].isWatchAppInstalled }
    phone.send(Payload(purchased: []), by: .highPriority)
    let first = try #require(phone.failures.first)
    try pairing.unpair()
    try eventually("no watch") { !sample.sessions[0].isPaired }
    for _ in 0..<99 { phone.send(Payload(purchased: []), by: .highPriority) }
    #expect(phone.failures.count == 100 && phone.failures.first == first)
    phone.send(Payload(purchased: []), by: .highPriority)
    #expect(phone.failures.count == 100 && !phone.failures.contains(first))
  }

  // MARK: 7. Files that no app removes

  @Test func inTheSampleTemporaryImagesPileUp() throws {
    let sample = try Sample()
    let (phone, watch) = (try sample.office(.phone), try sample.office(.watch))
    let album = sample.cinema.album(.watch)
    for _ in 0..<5 {
      try watch.purchase(34340)
      try eventually("the image comes") { album.movies == [34340] }
      try eventually("the phone knows") { phone.purchased == [34340] }
      try watch.giveBack(34340)
      try eventually("the phone knows") { phone.purchased.isEmpty }
    }
    try sample.settle(.watch)
    let path = sample.connectivity[0].temporaryPath
    #expect(try FileManager.default.contentsOfDirectory(atPath: path).count >= 5)
  }

  @Test func withOursNoFileIsLeft() throws {
    let ours = try Ours()
    for _ in 0..<5 {
      try ours.office(.watch).sell(34340, to: "me")
      try ours.images(.watch, are: [34340])
      try ours.images(.phone, are: [34340])
      try ours.office(.watch).takeBack(34340, from: "me")
      try ours.images(.watch, are: [])
      try ours.images(.phone, are: [])
    }
    for role in Role.allCases { #expect(try ours.cinema.files(role).isEmpty) }
    // No file is left of the transfers in progress, either.
    try eventually("no file is left in the container") {
      let found = try run("find", [ours.cinema.path, "-name", "*.png"])
      return found.output.isEmpty
    }
  }
}
