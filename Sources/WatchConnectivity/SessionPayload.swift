internal import Foundation
internal import WormholeDropIns
internal import WormholePropertyLists

/// The content that passes between the two sides.
enum SessionPayload {
  /// Converts a dictionary of the caller.
  static func take(
    _ dictionary: [String: Any], largest limit: Int
  ) throws(WCError) -> PropertyListValue {
    let value: PropertyListValue
    do throws(NotAPropertyList) {
      value = .dictionary(try PropertyListValue.dictionary(any: dictionary))
    } catch {
      throw WCError(error)
    }
    // Few dictionaries are near the limit, and measuring the exact size takes as long as sending.
    guard value.mostBytes > limit else { return value }
    guard let bytes = try? BinaryPropertyList.encode(value) else {
      throw WCError(.payloadTooLarge, "the dictionary exceeds the limits of a property list")
    }
    guard bytes.count <= limit else { throw tooLarge(bytes.count, limit) }
    return value
  }

  static func tooLarge(_ size: Int, _ limit: Int) -> WCError {
    WCError(.payloadTooLarge, "the content has \(size) bytes, and the limit is \(limit)")
  }
}

/// The kind of a message in requests and replies.
enum SessionMessageKind: String, CaseIterable {
  case dictionary = "message"
  case dictionaryWithReply = "message with reply"
  case data
  case dataWithReply = "data with reply"

  var wantsReply: Bool { self == .dictionaryWithReply || self == .dataWithReply }
}

/// The kind of a transfer when it is sent.
enum TransferKind: String, CaseIterable {
  case userInfo = "user info"
  case complication
  /// A complication transfer without urgency: there is no complication, or its budget is used up.
  case plainComplication = "plain complication"
  /// Data from Communicator, which may be large.
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

/// The kind of an application context.
let contextKind = "application context"

/// The counterpart's reply to a message.
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
    } else if let code = value["code"] {
      // Another version may have other codes: whatever the code is, the message has failed.
      let known: WCError.Code? =
        if case .integer(let number) = code { WCError.Code(rawValue: Int(number)) } else { nil }
      self = .failure(
        known ?? .genericError, value["reason"]?.stringValue ?? "the counterpart gave no reason")
    } else {
      self = .handled
    }
  }
}

/// A file's metadata, and the facts that the sender's next run needs about the file.
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
  /// An upper bound for the size of the value as a binary property list, in bytes.
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
