internal import WormholePropertyLists

/// The version of a server; a version before its release precedes it.
package struct ServerVersion: Comparable, Sendable, CustomStringConvertible {
  package let numbers: [UInt64]
  package let isPreRelease: Bool
  package let description: String

  /// Parses `2.10.23`, with or without a suffix such as `-beta.1`.
  package init?(_ text: String) {
    let start = text.utf8.prefix { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: "+") }
    let parts = start.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    numbers = parts.compactMap { Digits.number($0) }
    guard numbers.count == 3 else { return nil }
    let rest = text.utf8.dropFirst(start.count)
    isPreRelease = rest.first == UInt8(ascii: "-")
    description = text
  }

  package static func < (left: Self, right: Self) -> Bool {
    if left.numbers != right.numbers {
      return left.numbers.lexicographicallyPrecedes(right.numbers)
    }
    return left.isPreRelease && !right.isPreRelease
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.numbers == right.numbers && left.isPreRelease == right.isPreRelease
  }

  /// The first version that keeps its streams when it is killed.
  package static let oldest = ServerVersion("2.10.23")!
}

/// A server's description of itself, from its latest INFO.
package struct ServerInfo: Sendable {
  package var version: ServerVersion?
  package var name = ""
  /// The maximum size of a message with its headers.
  package var maxPayload = 1 << 20
  package var domain: String?
  package var hasHeaders = false
  package var requiresAuthorization = false
  /// Whether the server is about to end and asks its clients to leave.
  package var isLameDuck = false
  package var clientID: UInt64 = 0

  package init() {}

  /// Reads the object behind `INFO`.
  init(json: [UInt8]) throws(RelayFailure) {
    guard let value = RelayJSON.object(json) else {
      throw RelayFailure(.malformed, "the server's INFO is not a JSON object")
    }
    version = value["version"]?.stringValue.flatMap(ServerVersion.init)
    name = value["server_name"]?.stringValue ?? ""
    if let stated = value["max_payload"] {
      guard let size = stated.intValue, size > 0 else {
        throw RelayFailure(.malformed, "the server's INFO has a bad max_payload")
      }
      maxPayload = min(size, ProtocolParser.largestBody)
    }
    domain = value["domain"]?.stringValue.flatMap { $0.isEmpty ? nil : $0 }
    hasHeaders = value["headers"]?.boolValue ?? false
    requiresAuthorization = value["auth_required"]?.boolValue ?? false
    isLameDuck = value["ldm"]?.boolValue ?? false
    clientID = value["client_id"].flatMap(RelayJSON.number) ?? 0
  }
}

/// JSON as the server writes it.
enum RelayJSON {
  /// Returns the object that the bytes contain; nil for anything else.
  static func object(_ bytes: [UInt8]) -> PropertyListValue? {
    var limits = PropertyListLimits.default
    limits.depth = 32
    limits.objects = 1 << 16
    limits.reached = 1 << 16
    guard let value = try? JSONPropertyList.decode(bytes, limits: limits),
      value.dictionaryValue != nil
    else { return nil }
    return value
  }

  static func number(_ value: PropertyListValue) -> UInt64? {
    switch value {
    case .integer(let value): UInt64(exactly: value)
    case .unsigned(let value): value
    default: nil
    }
  }

  static func bytes(_ value: PropertyListValue) throws(RelayFailure) -> [UInt8] {
    do throws(PropertyListError) {
      return Array(try JSONPropertyList.encode(value).utf8)
    } catch {
      throw RelayFailure(.malformed, "cannot write a request: \(error)")
    }
  }
}
