import FoundationEssentials
import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists

/// A line of a dump: an object, whose keys state its kind.
enum DumpLine {
  /// The first line.
  case begin
  /// Names of channels that follow, up to a thousand.
  case names([String])
  /// The date is when the value expires; nil for never.
  case channel(String, PropertyListValue, Date?)
  case suite(String, [String: PropertyListValue])
  case message(PortableMessage)
  /// A part of the file of the message before.
  case piece(Data)
  /// The last line, with the number of channels, suites and messages.
  case end([Int])

  /// The form of this version.
  static let version = 1

  /// The limits of a line, within which each value of a container fits.
  ///
  /// Each dictionary of a value, and the innermost value, may be in an object with the type, and
  /// the value is in the object of the line. The object of a type has two keys and two values,
  /// and a value that is shared in a file is repeated in a line.
  static let limits: PropertyListLimits = {
    var limits = PropertyListLimits.output
    limits.depth = 2 * limits.depth + 2
    limits.objects = 5 * limits.reached + 64
    // Nothing is shared in a line.
    limits.reached = limits.objects
    return limits
  }()

  init(_ bytes: [UInt8]) throws {
    let object: [String: PropertyListValue]
    do throws(PropertyListError) {
      guard case .dictionary(let values) = try JSONPropertyList.decode(bytes, limits: Self.limits)
      else {
        throw PropertyListError(.invalidValue, "not an object")
      }
      object = values
    } catch {
      throw DumpProblem("not JSON: \(error.reason)")
    }
    let fields = Fields(object)
    if object["wormhole"] != nil {
      guard object["wormhole"]?.intValue == Self.version else {
        throw DumpProblem("the dump has another form than \(Self.version)")
      }
      self = .begin
    } else if case .array(let names)? = object["names"] {
      self = .names(names.compactMap(\.stringValue))
    } else if object["channel"] != nil {
      self = .channel(
        try fields.text("channel"), try fields.value("value"), try fields.date("expiresAt"))
    } else if object["suite"] != nil {
      guard case .dictionary(let values)? = object["values"] else {
        throw DumpProblem("'values' is missing")
      }
      self = .suite(try fields.text("suite"), try DumpValue.read(values))
    } else if object["message"] != nil {
      self = .message(try PortableMessage(fields))
    } else if object["piece"] != nil {
      guard let data = Data(base64Encoded: try fields.text("piece")) else {
        throw DumpProblem("'piece' is not in base64")
      }
      self = .piece(data)
    } else if case .array(let counts)? = object["end"] {
      let numbers = counts.compactMap(\.intValue)
      guard counts.count == 3, numbers.count == 3, numbers.allSatisfy({ $0 >= 0 }) else {
        throw DumpProblem("'end' has no three numbers")
      }
      self = .end(numbers)
    } else {
      throw DumpProblem("not a line of a dump: no key states its kind")
    }
  }

  /// The fields of an object.
  fileprivate struct Fields {
    private let object: [String: PropertyListValue]

    init(_ object: [String: PropertyListValue]) { self.object = object }

    func text(_ key: String) throws(DumpProblem) -> String {
      guard let text = object[key]?.stringValue else {
        throw DumpProblem("'\(key)' is missing, or not a text")
      }
      return text
    }

    func value(_ key: String) throws(DumpProblem) -> PropertyListValue {
      guard let value = object[key] else { throw DumpProblem("'\(key)' is missing") }
      return try DumpValue.read(value)
    }

    func has(_ key: String) -> Bool { object[key] != nil }
    subscript(key: String) -> PropertyListValue? { object[key] }

    func date(_ key: String) throws(DumpProblem) -> Date? {
      guard has(key) else { return nil }
      guard let date = DumpValue.date(try text(key)) else {
        throw DumpProblem("'\(key)' is not a date")
      }
      return date
    }
  }
}

extension PortableMessage {
  fileprivate init(_ fields: DumpLine.Fields) throws(DumpProblem) {
    var headers: [String: String] = [:]
    for (key, value) in fields["headers"]?.dictionaryValue ?? [:] {
      guard let text = value.stringValue else {
        throw DumpProblem("the header '\(key)' is not a text")
      }
      headers[key] = text
    }
    var file: (name: String, size: Int)?
    if let given = fields["file"] {
      guard let name = given["name"]?.stringValue, let size = given["size"]?.intValue, size >= 0,
        !name.isEmpty, ![".", ".."].contains(name), !name.utf8.contains(UInt8(ascii: "/"))
      else { throw DumpProblem("'file' has no name and size") }
      file = (name, size)
    }
    var death: Death?
    if fields.has("reason") {
      death = Death(
        reason: try fields.text("reason"), attempts: fields["attempts"]?.intValue ?? 0,
        when: try fields.date("failedAt") ?? Date())
    }
    let isQueue = fields.has("queue")
    self.init(
      to: try fields.text(isQueue ? "queue" : "to"), isQueue: isQueue,
      id: try fields.text("message"), from: fields["from"]?.stringValue,
      kind: try fields.text("kind"), headers: headers,
      orderingKey: fields["orderingKey"]?.stringValue,
      isUrgent: fields["urgent"]?.boolValue ?? false, sentAt: try fields.date("sent") ?? Date(),
      expires: try fields.date("expires"), notBefore: try fields.date("notBefore"),
      value: fields.has("value") ? try fields.value("value") : nil, file: file, death: death)
  }

  /// The line of a dump, without the file.
  var dumped: [String: PropertyListValue] {
    var object: [String: PropertyListValue] = [
      "message": .string(id), isQueue ? "queue" : "to": .string(to), "kind": .string(kind),
    ]
    object["from"] = from.map { .string($0) }
    object["headers"] = headers.isEmpty ? nil : .dictionary(headers.mapValues { .string($0) })
    object["orderingKey"] = orderingKey.map { .string($0) }
    object["urgent"] = isUrgent ? .boolean(true) : nil
    object["sent"] = DateText.format(sentAt).map { .string($0) }
    object["expires"] = expires.flatMap { DateText.format($0) }.map { .string($0) }
    object["notBefore"] = notBefore.flatMap { DateText.format($0) }.map { .string($0) }
    object["value"] = value.map(DumpValue.written)
    object["file"] = file.map {
      .dictionary(["name": .string($0.name), "size": .integer(Int64($0.size))])
    }
    if let death {
      object["reason"] = .string(death.reason)
      object["attempts"] = .integer(Int64(death.attempts))
      object["failedAt"] = DateText.format(death.when).map { .string($0) }
    }
    return object
  }
}
