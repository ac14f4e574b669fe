internal import PropertyLists
internal import Syscalls

/// The name of a presenter's file, which is never used twice: `<process>,<number>`.
///
/// The process is that of the file in `processes/`; accesses and presenters of one are counted
/// together.
package struct PresenterName: Hashable, Sendable {
  package let process: String
  package let number: Int

  init(process: String, number: Int) {
    self.process = process
    self.number = number
  }

  /// Nil if it is in no form of ours.
  init?(_ text: String) {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count == 2, Staging.isOurs(String(parts[0])), parts[1].utf8.count <= 16,
      let number = Int(parts[1]), "\(number)" == parts[1]
    else { return nil }
    self.init(process: String(parts[0]), number: number)
  }

  package var text: String { "\(process),\(number)" }
}

/// What the file of a presenter says: written once, before anybody sees it.
package struct PresenterEntry: Sendable {
  /// Absolute, and without links on the way to them.
  package let paths: [AccessPath]
  /// Accesses of this purpose do not ask it.
  package let purpose: String
  /// As which guest of the container its process can be asked.
  package let guest: String
  /// Whether those who read ask it too, and not only those who write.
  package let mindsReaders: Bool

  package init(_ paths: [AccessPath], purpose: String, guest: String, mindsReaders: Bool) {
    self.paths = paths
    self.purpose = purpose
    self.guest = guest
    self.mindsReaders = mindsReaders
  }

  /// The largest file that is read.
  static let largestFile = 1 << 20

  /// Whether it presents one of these, something above one, or something below one.
  package func isRelated(to others: some Sequence<AccessPath>) -> Bool {
    others.contains { other in paths.contains { $0.isRelated(to: other) } }
  }
}

extension PresenterEntry {
  func encoded() throws -> [UInt8] {
    let entries: [String: PropertyListValue] = [
      "paths": .array(paths.map { .string($0.text) }),
      "purpose": .string(purpose),
      "guest": .string(guest),
      "mindsReaders": .boolean(mindsReaders),
    ]
    var limits = PropertyListLimits.default
    limits.bytes = Self.largestFile
    return try BinaryEncoder(limits: limits).encode(PropertyListValue.dictionary(entries))
  }

  /// Nil if it is in no form of ours.
  init?(_ bytes: [UInt8]) {
    guard let list = try? BinaryPropertyList.decode(bytes),
      let paths = list["paths"]?.arrayValue?.compactMap(\.stringValue), !paths.isEmpty,
      paths.allSatisfy({ $0.begins(with: "/") }),
      let purpose = list["purpose"]?.stringValue,
      // It becomes the name of a directory.
      let guest = list["guest"]?.stringValue, Staging.isOurs(guest)
    else { return nil }
    self.init(
      paths.map { AccessPath($0) }, purpose: purpose, guest: guest,
      mindsReaders: list["mindsReaders"]?.boolValue ?? true)
  }
}
