import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The actions of other users in a container that *Promises* describes, and their limits.
@Suite(.blocking) struct GroupAbuseTests {
  private let place: SharedPlace?

  init() throws {
    place = try SharedPlace.make(for: "other users in a container")
    if let place {
      let made = try place.run(.alice, .open(place.path))
      #expect(made.status == .exited(0), "\(made.errors)")
    }
  }

  private func open(_ place: SharedPlace) throws -> SharedContainer {
    var options = Options()
    options.sharing = .group
    return try SharedContainer(directory: place.path, options: options)
  }

  // MARK: Actions of a member of a group

  /// A name tells members apart, and proves nothing.
  @Test func aMemberOfTheGroupCanForgeASender() throws {
    guard let place else { return }
    let watch = try open(place).join(as: "watch")
    let alice = try place.start(.alice, .be(place.path, "phone"))
    try eventually("she has the name") { try !alice.output.isEmpty }
    let sent = try place.run(.bob, .sendAs(place.path, from: "phone", to: "watch", 7))
    #expect(sent.output == "sent\n", "\(sent.errors)")
    let heard = Heard<String>()
    let receiving = try watch.receive { message in
      heard.add("\(message.from ?? "nobody") \(try message.value(as: Int.self))")
    }
    try heard.wait("it comes") { $0 == ["phone 7"] }
    receiving.stop()
    watch.leave()
  }

  /// An empty file in the requester's folder is a reply, whichever user made the file.
  @Test func aMemberOfTheGroupCanAnswerForAnother() throws {
    guard let place else { return }
    let phone = try open(place).join(as: "phone")
    let alice = try place.start(.alice, .respond(place.path, "watch", .quietly))
    try eventually("she has joined") { try !alice.output.isEmpty }
    // While Alice is suspended, the file of the request remains visible.
    try alice.child.send(.stop)
    try alice.waitUntilStopped()
    let answered = Monitor<Result<Bool, WormholeError>?>(nil)
    let asking = phone.peer("watch").request(1, as: Bool.self, kind: "Int", within: patience) {
      end in answered.signal { $0 = end }
    }
    let live = try Descriptor.open(
      path: "\(place.path)/members/watch/live", [.readOnly, .directory])
    let folder = try live.open(try #require(try live.names().first), [.readOnly, .directory])
    let question = try eventually("the question is there") { try folder.names().first }
    let answer = "\(question.prefix(20)),y,\(question.split(separator: ",")[2])"
    let bob = try place.run(
      .bob, .touch("\(place.path)/members/phone/live/\(phone.incarnation)", answer))
    #expect(bob.status == .exited(0), "\(bob.errors)")
    #expect(try answered.wait(until: .now + patience) { $0 }?.get() == true)
    withExtendedLifetime(asking) {}
    phone.leave()
  }

  // MARK: Actions of a user who may only read

  /// A reader can lock a file without permission to write; writers then take over as from a
  /// suspended holder.
  @Test func aLockOfAReaderDelaysAChangeByALeaseAtMost() throws {
    let folder = try TemporaryDirectory()
    try folder.descriptor.setMode(0o711)
    var options = Options()
    options.lease = .milliseconds(200)
    let container = try SharedContainer(directory: folder.path + "/c", options: options)
    let channel = container.channel("n", of: Int.self)
    try channel.put(1)
    _ = try run("chmod", ["-R", "go+rX,go-w", folder.path + "/c"])
    let lock = container.directory + "/channels/n/lock"
    let other = SharedPlace.User.carol.rawValue
    let reader = try Running(.as(user: other, group: other, .flock(lock, "1")))
    try eventually("it is held") { try reader.output == "held\n" || reader.hasEnded }
    guard try reader.output == "held\n" else {
      skip("a lock of another user", because: "there is no other user to become")
      return
    }
    let begin = Instant.now
    try channel.update { $0 = ($0 ?? 0) + 1 }
    #expect(Instant.now - begin > .milliseconds(150))
    #expect(try channel.value == 2)
    // The next generation is another file, whose lock is free.
    for _ in 0..<3 { try channel.update { $0 = ($0 ?? 0) + 1 } }
    #expect(try channel.value == 5)
    // It can write nothing.
    let touched = try run(.as(user: other, group: other, .touch(lock, "new")))
    #expect(touched.status != .exited(0))
  }
}
