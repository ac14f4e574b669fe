internal import Foundation
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeDropIns
internal import WormholePropertyLists

/// The form of a message in its channel.
///
/// An object that a property list can hold is stored unchanged, so that the command and programs in
/// other languages can read the object. Any other object is archived, and stored as data under a
/// key that marks an archive. The surrounding file has a checksum, so an archive is decoded only if
/// it is, byte for byte, the archive written by a program of the group: Foundation's decoder may
/// end the process when it decodes a damaged archive. A program that may write to the group's
/// directory can still write such an archive.
enum StoredMessage {
  private static let archived = "MMWormhole.archive"

  static func store(
    _ object: (any NSCoding)?, _ identifier: String
  ) throws(WormholeError) -> PropertyListValue {
    // Passing `nil` is delivered too, so it is stored, as an archive of nothing.
    guard let object else { return [archived: .data(Data())] }
    if let value = try? PropertyListValue(any: object), !isArchive(value) { return value }
    do {
      try NotAPropertyList.check(archiving: object)
      return [
        archived: .data(
          try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: false))
      ]
    } catch let error as NotAPropertyList {
      throw WormholeError(
        .invalidValue, "pass message", identifier,
        because: "'\(error.place)' has the type \(error.type), which has no NSCoding",
        hint: "convert the value to a number, a text or an object of a class with NSCoding")
    } catch {
      throw WormholeError(
        .invalidValue, "pass message", identifier,
        because: "NSKeyedArchiver refuses the object: \(error)",
        hint: "pass a property list, or an object whose parts all conform to NSCoding")
    }
  }

  static func object(
    _ value: PropertyListValue?, _ identifier: String
  ) throws(WormholeError) -> Any? {
    guard let value else { return nil }
    guard isArchive(value), let data = value[archived]?.dataValue else { return value.foundation }
    if data.isEmpty { return nil }
    do {
      let unarchiver = try NSKeyedUnarchiver(forReadingFrom: data)
      unarchiver.requiresSecureCoding = false
      unarchiver.decodingFailurePolicy = .setErrorAndReturn
      let object = unarchiver.decodeObject(forKey: NSKeyedArchiveRootObjectKey)
      if let error = unarchiver.error { throw error }
      return object
    } catch {
      throw WormholeError(
        .typeMismatch, "read message", identifier,
        because: "NSKeyedUnarchiver refuses the archive in this program: \(error)",
        hint: "give the class the same name as in the archive, or register the class with "
          + "NSKeyedUnarchiver.setClass(_:forClassName:)")
    }
  }

  /// The object as an instance of a class, as the header declares it.
  static func archivable(_ object: Any?) -> (any NSCoding)? {
    object.flatMap { $0 as AnyObject as? any NSCoding }
  }

  private static func isArchive(_ value: PropertyListValue) -> Bool {
    guard let values = value.dictionaryValue, values.count == 1 else { return false }
    return values[archived] != nil
  }
}
