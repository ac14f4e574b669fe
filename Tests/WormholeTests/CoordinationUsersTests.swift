import SharedContainer
import Syscalls
import TestSupport
import TestTraits
import Testing
import Wormhole

/// Two users at the files of a group that is for both.
@Suite(.blocking) struct CoordinationUsersTests {
  private let place: SharedPlace?

  init() throws {
    place = try SharedPlace.make(for: "accesses of two users")
    guard let place else { return }
    try place.folder.descriptor.makeDirectory("shared/cinema", mode: 0o700)
    try place.give("shared/cinema", to: .alice, mode: 0o2770)
    let made = try place.run(.alice, .open("\(place.directory)/cinema/.wormhole"))
    #expect(made.status == .exited(0), "\(made.errors)")
    try place.folder.write("0", to: "shared/cinema/n")
    try place.give("shared/cinema/n", to: .alice, mode: 0o660)
  }

  private func start(
    _ place: SharedPlace, _ user: SharedPlace.User, _ job: PeerJob
  ) throws -> Running {
    try place.start(user, job, environment: ["WORMHOLE_ROOT=\(place.directory)"])
  }

  @Test func theyWaitForEachOther() throws {
    guard let place else { return }
    let path = "\(place.directory)/cinema/n"
    let alice = try start(place, .alice, .coordinate(.write, path, .linger))
    try eventually("she is inside") { try alice.output == "inside\n" }
    let bob = try start(place, .bob, .coordinate(.read, path, .nothing))
    let waiting = "\(place.directory)/cinema/.wormhole/system/coordination/waiting"
    try eventually("he waits") {
      try !Descriptor.open(path: waiting, [.readOnly, .directory]).names().isEmpty
    }
    #expect(try bob.output == "")
    try alice.child.send(.kill)
    let end = try bob.outcome()
    #expect(end.output == "inside\ndone\n", "\(end.errors)")
    let peers = try [SharedPlace.User.alice, .bob, .alice, .bob].map { user in
      try start(place, user, .coordinateAdd(path, times: 25))
    }
    for peer in peers { #expect(try peer.outcome(within: .seconds(60)).errors == "") }
    #expect(try place.folder.read("shared/cinema/n") == "100")
  }

  @Test func whatOneShowsTheOtherAsksFor() throws {
    guard let place else { return }
    let path = "\(place.directory)/cinema/n"
    let alice = try start(place, .alice, .present(path, .save("saved")))
    try eventually("she presents") { try alice.output == "presenting\n" }
    let bob = try start(place, .bob, .coordinate(.write, path, .write("his")))
    let end = try bob.outcome()
    #expect(end.output == "inside\ndone\n", "\(end.errors)")
    try eventually("she is told") {
      try alice.output
        == "presenting\nasked before writing\nsaved\nresumed\nchanged .\n"
    }
    #expect(try place.folder.read("shared/cinema/n") == "his")
  }
}
