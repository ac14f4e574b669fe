import AppGroups
import MMWormhole

/// Tells the other programs of the group how many seats are left, in two of the ways they know.
func sell(_ seats: Int, in group: String) {
  UserDefaults(suiteName: group)?.set(seats, forKey: "seats left")
  MMWormhole(applicationGroupIdentifier: group, optionalDirectory: nil)?
    .passMessageObject(seats as NSNumber, identifier: "seats")
}
