import CommandLine
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
      let isNull = self == .json && error.reason.begins(with: "null")
      throw Failure(
        WormholeError(
          .invalidValue, "use the \(rawValue) for", subject, because: error.reason + place,
          hint: isNull ? "leave the key out; a value that is not there is said by 'clear'" : nil))
    }
  }

  /// What bytes from a pipe become if nobody says: text if they are that.
  static func value(ofAny bytes: [UInt8]) -> PropertyListValue {
    String(validating: bytes, as: UTF8.self).map { .string($0) } ?? .data(Data(bytes))
  }

  /// What a program wrote: with a text, one line feed at the end is none of the value's.
  static func value(
    ofStream bytes: [UInt8], _ type: ValueType?, raw: Bool, for subject: String
  ) throws(Failure) -> PropertyListValue {
    let isText = type == .string || type == nil && String(validating: bytes, as: UTF8.self) != nil
    let bytes = isText && !raw && bytes.last == UInt8(ascii: "\n") ? Array(bytes.dropLast()) : bytes
    return try type?.value(of: bytes, for: subject) ?? value(ofAny: bytes)
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
