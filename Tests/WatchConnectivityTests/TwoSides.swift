import Foundation
import TestSupport
import WatchConnectivity
import Wormhole
import WormholeSyscalls

/// Both sides of a pairing in one process, in a container of their own.
///
/// Each session has a container instance of its own, so that the two sides see each other as two
/// processes would.
final class TwoSides {
  let folder: TemporaryDirectory
  let container: String
  let pairing: Pairing
  private(set) var phone: WCSession
  private(set) var watch: WCSession
  var phoneSide = Recorder()
  var watchSide = Recorder()
  let settings: WCSession.Settings

  /// - Parameter place: where the container is to lie; by default in the folder.
  init(
    in place: String? = nil, _ change: (inout WCSession.Settings) -> Void = { _ in }
  ) throws {
    var settings = WCSession.Settings()
    settings.durability = .process
    change(&settings)
    self.settings = settings
    folder = try TemporaryDirectory()
    container = (place ?? folder.path) + "/container"
    pairing = try Pairing(directory: container)
    phone = WCSession(role: .phone, place: .directory(container), settings: settings)
    watch = WCSession(role: .watch, place: .directory(container), settings: settings)
  }

  deinit {
    phone.end()
    watch.end()
  }

  func activate() throws {
    try activatePhone()
    try activateWatch()
    try eventually("both are reachable") { phone.isReachable && watch.isReachable }
  }

  func activatePhone() throws { try activate(phone, phoneSide) }
  func activateWatch() throws { try activate(watch, watchSide) }

  private func activate(_ session: WCSession, _ side: Recorder) throws {
    let before = side.heard.count
    session.delegate = side
    session.activate()
    try side.heard.wait("activation") { $0.dropFirst(before).contains("activated 2 ok") }
  }

  /// As after the end of its process, and a new one.
  func restartWatch(named name: String = "watch") throws {
    watch.end()
    watchSide = Recorder()
    watch = WCSession(
      role: .watch, place: .directory(container), watch: name, settings: settings)
  }

  func restartPhone() throws {
    phone.end()
    phoneSide = Recorder()
    phone = WCSession(role: .phone, place: .directory(container), settings: settings)
  }
}
