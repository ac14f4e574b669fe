import FoundationEssentials
import PropertyLists
import SharedContainer
import Syscalls

/// What kind of value bytes are to become.
enum ValueType: String, CaseIterable {
  case string, json, plist, data

  /// Makes a value of bytes; what cannot be one is an error that names what it was for.
  func value(of bytes: [UInt8], for subject: String) throws(Failure) -> PropertyListValue {
    do throws(PropertyListError) {
      switch self {
      case .string:
        guard let text = String(validating: bytes, as: UTF8.self) else {
          throw PropertyListError(.invalidValue, "it is not UTF-8; '--type data' takes any bytes")
        }
        return .string(text)
      case .json: return try JSONPropertyList.decode(bytes)
      case .plist: return try PropertyListValue(reading: bytes)
      case .data: return .data(Data(bytes))
      }
    } catch {
      let place = error.offset.map { " (byte \($0))" } ?? ""
      throw Failure(
        WormholeError(
          .invalidValue, "use the \(rawValue) for", subject, because: error.reason + place))
    }
  }

  /// What bytes from a pipe become if nobody says: text if they are that.
  static func value(ofAny bytes: [UInt8]) -> PropertyListValue {
    String(validating: bytes, as: UTF8.self).map { .string($0) } ?? .data(Data(bytes))
  }
}

extension PropertyListValue {
  /// As `get` prints it: strings as they are, data raw, other values as JSON.
  func printed(raw: Bool = false) throws -> [UInt8] {
    switch self {
    case .data(let data): return Array(data)
    case .string(let text): return Array(text.utf8) + (raw ? [] : [UInt8(ascii: "\n")])
    default:
      let text = try JSONPropertyList.encode(self, limits: .output)
      return Array(text.utf8) + (raw ? [] : [UInt8(ascii: "\n")])
    }
  }

  /// On one line: a string as it is unless it would take more than one, or none; else as JSON.
  func inOneLine() throws -> String {
    if case .string(let text) = self, Self.fits(text) { return text }
    return try JSONPropertyList.encode(self, limits: .output)
  }

  private static func fits(_ text: String) -> Bool {
    !text.isEmpty && text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
  }
}

extension String {
  /// A name on one line of a list: as it is, or as JSON where it holds control characters.
  func inOneLine() throws -> String { try PropertyListValue.string(self).inOneLine() }
}

extension StandardStream {
  /// All that comes, to its end; an error once it is more than a value can be.
  func readAll(limit: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    do throws(Errno) {
      while true {
        let more = try self.read()
        if more.isEmpty { return bytes }
        bytes += more
        if bytes.count > limit { break }
      }
    } catch {
      throw WormholeError(error, "read", "standard input")
    }
    throw WormholeError(
      .tooLarge, "read", "standard input", because: "it has more than \(limit) bytes")
  }
}
