import FoundationEssentials
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The type of a value that is made of bytes.
enum ValueType: String, CaseIterable {
  case string, json, plist, data

  /// Makes a value of bytes; if that is impossible, the error names the value's purpose.
  func value(of bytes: [UInt8], for subject: String) throws(Failure) -> PropertyListValue {
    do throws(PropertyListError) {
      switch self {
      case .string:
        guard let text = String(validating: bytes, as: UTF8.self) else {
          throw PropertyListError(.invalidValue, "not UTF-8; '--type data' accepts all bytes")
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
          hint: isNull ? "omit the key; to remove a value, use 'wormhole clear'" : nil))
    }
  }

  /// Makes a value of bytes without a given type: text if they are UTF-8, otherwise data.
  static func value(ofAny bytes: [UInt8]) -> PropertyListValue {
    String(validating: bytes, as: UTF8.self).map { .string($0) } ?? .data(Data(bytes))
  }

  /// Makes a value of a program's output; one line feed at the end of a text is not a part of the
  /// value.
  static func value(
    ofStream bytes: [UInt8], _ type: ValueType?, raw: Bool, for subject: String
  ) throws(Failure) -> PropertyListValue {
    let isText = type == .string || type == nil && String(validating: bytes, as: UTF8.self) != nil
    let bytes = isText && !raw && bytes.last == UInt8(ascii: "\n") ? Array(bytes.dropLast()) : bytes
    return try type?.value(of: bytes, for: subject) ?? value(ofAny: bytes)
  }
}

extension PropertyListValue {
  /// Returns the value as `get` prints it: strings unchanged, data raw, other values as JSON.
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
  /// Returns all bytes to the end; throws once there are more than a value can have.
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
      .tooLarge, "read", "standard input", because: "the input has more than \(limit) bytes")
  }
}
