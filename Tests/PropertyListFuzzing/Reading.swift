import FoundationEssentials
package import WormholePropertyLists

/// The result of the readers for a file.
package enum Reading: Sendable {
  case accepted(PropertyListValue)
  case refused
  /// One reader refused a file that another reader accepted.
  case disputed(String)

  /// Reads a file in every available way.
  ///
  /// A reader that crashes ends the process, which also reveals the fault.
  package init(_ bytes: [UInt8], _ limits: PropertyListLimits) {
    let isBinary = PropertyListForm(of: bytes) == .binary
    do {
      self = .accepted(try PropertyListValue(reading: bytes, limits: limits))
      if isBinary { decodeAsTypes(bytes, limits) }
    } catch {
      self = .refused
      let decoder = BinaryDecoder(limits: limits)
      if isBinary, (try? decoder.decode(PropertyListValue.self, from: bytes)) != nil {
        self = .disputed("the decoder takes what the reader refuses: \(error)")
      }
    }
  }

  /// The fault of an accepted value: the value has to be within the limits, and to be read back
  /// from every form that can carry it.
  package func brokenPromise(_ limits: PropertyListLimits) -> String? {
    switch self {
    case .refused: return nil
    case .disputed(let reason): return reason
    case .accepted(let value):
      let visited = Self.count(value)
      if visited > limits.reached { return "\(visited) objects were visited" }
      for form in PropertyListForm.allCases {
        guard let written = try? value.written(as: form) else {
          // XML cannot carry some characters and dates; all further forms carry everything.
          if form == .xml { continue }
          return "\(form) cannot be written"
        }
        guard let read = try? PropertyListValue(reading: written) else {
          return "\(form) cannot be read again"
        }
        if read != value, form != .xml { return "\(form) came back as another value" }
      }
      return nil
    }
  }

  private static func count(_ value: PropertyListValue) -> Int {
    var waiting = [value]
    var count = 0
    while let next = waiting.popLast() {
      count += 1
      if case .array(let values) = next { waiting += values }
      if case .dictionary(let values) = next {
        count += values.count
        waiting += values.values
      }
    }
    return count
  }
}

/// A type that nests as deep as the file does.
private struct Node: Decodable {
  var name: String?
  var children: [Node]
}

/// A type that decodes any content, one container at a time.
private struct Whatever: Decodable {
  init(from decoder: any Decoder) throws {
    if var array = try? decoder.unkeyedContainer() {
      while !array.isAtEnd { _ = try array.decode(Whatever.self) }
    } else if let keyed = try? decoder.container(keyedBy: WhateverKey.self) {
      for key in keyed.allKeys { _ = try keyed.decode(Whatever.self, forKey: key) }
    } else {
      let single = try decoder.singleValueContainer()
      _ = single.decodeNil()
      if (try? single.decode(String.self)) != nil { return }
      _ = try? single.decode(UInt8.self)
      _ = try? single.decode(Float.self)
      _ = try? single.decode(Int128.self)
      _ = decoder.codingPath
    }
  }
}

private struct WhateverKey: CodingKey {
  var stringValue: String
  var intValue: Int? { Int(stringValue) }
  init(stringValue: String) { self.stringValue = stringValue }
  init(intValue: Int) { stringValue = String(intValue) }
}

private struct Envelope: Decodable {
  var version: Int
  var sent: Date
  var from: String?
  var value: PropertyListValue?
}

private enum Payload: Decodable {
  case text(String, size: Int)
}

private func decodeAsTypes(_ bytes: [UInt8], _ limits: PropertyListLimits) {
  let decoder = BinaryDecoder(limits: limits)
  _ = try? decoder.decode(Node.self, from: bytes)
  _ = try? decoder.decode(Whatever.self, from: bytes)
  _ = try? decoder.decode(Envelope.self, from: bytes)
  _ = try? decoder.decode(Payload.self, from: bytes)
  _ = try? decoder.decode([Int].self, from: bytes)
  _ = try? decoder.decode([[String: Double]].self, from: bytes)
  _ = try? decoder.decode([PropertyListValue].self, from: bytes)
  _ = try? decoder.decode([Int: Data?].self, from: bytes)
}
