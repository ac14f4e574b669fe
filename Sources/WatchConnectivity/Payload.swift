internal import DropIns
internal import Foundation
internal import PropertyLists

/// What goes between the two sides.
enum Payload {
  /// Takes a dictionary of a caller's.
  static func take(
    _ dictionary: [String: Any], largest limit: Int
  ) throws(WCError) -> PropertyListValue {
    let value: PropertyListValue
    do throws(NotAPropertyList) {
      value = .dictionary(try PropertyListValue.dictionary(any: dictionary))
    } catch {
      throw WCError(error)
    }
    // Few are near the limit, and to look exactly takes as long as to send.
    guard value.mostBytes > limit else { return value }
    guard let bytes = try? BinaryPropertyList.encode(value) else {
      throw WCError(.payloadTooLarge, "it cannot be written at all")
    }
    guard bytes.count <= limit else { throw tooLarge(bytes.count, limit) }
    return value
  }

  static func tooLarge(_ size: Int, _ limit: Int) -> WCError {
    WCError(.payloadTooLarge, "it takes \(size) bytes, and the limit is \(limit)")
  }
}

/// A message as it is sent and answered.
enum MessageKind: String, CaseIterable {
  case dictionary = "message"
  case dictionaryWithReply = "message with reply"
  case data
  case dataWithReply = "data with reply"

  var wantsReply: Bool { self == .dictionaryWithReply || self == .dataWithReply }
}

/// A transfer as it is sent.
enum TransferKind: String, CaseIterable {
  case userInfo = "user info"
  case complication
  /// For the complication, too, and of no haste: there is none, or its budget is used up.
  case plainComplication = "plain complication"
  /// Data of Communicator's, which may be large.
  case blob
  case file

  var takenKind: WCSession.TakenKind {
    switch self {
    case .userInfo: .userInfo
    case .complication, .plainComplication: .complication
    case .blob, .file: .blob
    }
  }

  static let all = Set(allCases.map(\.rawValue))
}

/// The name of what is told as a state.
let contextKind = "application context"

/// What the counterpart says to a message.
enum Answer {
  case handled
  case reply(PropertyListValue)
  case failure(WCError.Code, String)

  var value: PropertyListValue {
    switch self {
    case .handled: [:]
    case .reply(let value): ["reply": value]
    case .failure(let code, let reason):
      ["code": .integer(Int64(code.rawValue)), "reason": .string(reason)]
    }
  }

  init(_ value: PropertyListValue) {
    if let reply = value["reply"] {
      self = .reply(reply)
    } else if case .integer(let number)? = value["code"] {
      let code = WCError.Code(rawValue: Int(number)) ?? .genericError
      self = .failure(code, value["reason"]?.stringValue ?? "it says no more")
    } else {
      self = .handled
    }
  }
}

/// A file's metadata, and what its sender's life after this one needs to know of it.
enum FilePayload {
  static func wrap(_ metadata: PropertyListValue?, _ path: String) -> PropertyListValue {
    var values: [String: PropertyListValue] = ["path": .string(path)]
    values["metadata"] = metadata
    return .dictionary(values)
  }

  static func metadata(_ value: PropertyListValue?) -> [String: Any]? {
    value?["metadata"]?.foundationDictionary
  }

  static func path(_ value: PropertyListValue?) -> String? { value?["path"]?.stringValue }
}

extension PropertyListValue {
  /// More bytes than it takes as a binary property list.
  fileprivate var mostBytes: Int {
    switch self {
    case .dictionary(let values):
      values.reduce(24) { $0 + $1.key.utf8.count * 2 + 32 + $1.value.mostBytes }
    case .array(let values): values.reduce(24) { $0 + 16 + $1.mostBytes }
    case .string(let text): text.utf8.count * 2 + 24
    case .data(let data): data.count + 24
    case .integer, .unsigned, .real, .boolean, .date: 24
    }
  }
}
