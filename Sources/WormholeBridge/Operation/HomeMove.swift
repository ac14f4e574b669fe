package import Wormhole
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Moves the home of a member from this machine to another one.
///
/// The move is one change of the home's record on the servers, by compare-and-set. What follows may
/// be done at any later time, by every bridge when it reads the record:
///
/// 1. This machine makes the member's directory a proxy. Messages of its own programs that wait
///    there go to the new home, and so do messages of other machines whose senders want no outcome.
/// 2. Other messages are returned to the machines of their senders, which send them to the new
///    home. So each outcome comes back to the machine that has the message.
/// 3. The new home removes its proxy as soon as it has all its messages back.
///
/// Killed at any point, the command is run again.
package enum HomeMove {
  private static let operation = "move member"

  /// Returns whether the home was here until now.
  package static func run(
    _ container: SharedContainer, _ settings: Bridge.Settings, _ member: String,
    to machine: String
  ) throws -> Bool {
    let folder = try BridgeFolder(of: container.storage)
    guard let place = try Place.read(folder) else {
      throw WormholeError(
        .notFound, operation, member, because: "no bridge has ever served this container")
    }
    let isMoved = try ServerDialog.run(settings, "wormhole-move", as: place.machine) { dialog in
      let subjects = try Subjects(group: place.group, dialog.deployment())
      let records = try dialog.records(subjects)
      guard let home = records.homes[member], let present = home.machine else {
        throw WormholeError(
          .notFound, operation, member, because: "no machine is its home",
          hint: "join under the name on the machine that shall be its home")
      }
      guard present != machine else { return false }
      guard present == place.machine else {
        throw WormholeError(
          .conflict, operation, member, because: "its home is machine \(present)",
          hint: "run this command with the container of that machine")
      }
      guard let target = records.machines[machine], target.record.fate == nil else {
        throw WormholeError(
          .notFound, operation, member, because: "the group has no machine \(machine)",
          hint: "list the machines with 'wormhole bridge status'")
      }
      try Carrier(container).holding(member, to: operation) {
        try dialog.change(
          subjects.memberRecord(member), after: home.sequence, Home.bytes(machine, after: home),
          orElse: WormholeError(
            .conflict, operation, member, because: "its home was changed in the meantime",
            hint: "run the command again"))
      }
      return true
    }
    // The bridge does the same; without a bridge, no program may join under the name any more.
    if machine != place.machine {
      do throws(WormholeError) {
        _ = try Carrier(container).proxy(of: .member(member), on: machine)
      } catch {
        // The bridge of this container holds the name while it does the same.
        guard error.code == .nameTaken else { throw error }
      }
    }
    return isMoved
  }
}
