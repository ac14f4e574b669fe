internal import WormholeContainerStorage
internal import WormholePropertyLists

/// The kinds of content with a form of their own, by their names in errors.
enum FormNoun: String { case channel, message, context, request }

/// The meaning of a property list error for the caller that writes or reads the value.
///
/// Only here does a `PropertyListError` become a code.
extension WormholeError {
  /// Converts an error; a `WormholeError` passes unchanged.
  ///
  /// - Parameters:
  ///   - noun: the kind of content whose form is read.
  ///   - type: the type of a value that is read.
  ///   - code: the code for an error that the value's own code has thrown.
  init(
    _ error: any Error, _ operation: String, _ subject: String, of noun: FormNoun = .channel,
    as type: Any.Type? = nil, otherwise code: Code
  ) {
    switch error {
    case let error as WormholeError: self = error
    case let error as PropertyListError: self.init(error, operation, subject, noun, type)
    default:
      let reader = code == .typeMismatch ? Self.reader(type) : ""
      self.init(code, operation, subject, because: "\(error)" + reader)
    }
  }

  private init(
    _ error: PropertyListError, _ operation: String, _ subject: String, _ noun: FormNoun,
    _ type: Any.Type?
  ) {
    var path = error.codingPath
    let isInBatch = path.first?.stringValue == MessageFile.ValueKey.values.rawValue
    let isInValue = isInBatch || path.first?.stringValue == Envelope.value
    // In a batch, the next component is the index of the value, which the caller knows.
    if isInValue { path.removeFirst(isInBatch ? min(2, path.count) : 1) }
    let code: Code =
      switch error.kind {
      case .limit(.bytes), .limit(.expandedBytes): .tooLarge
      case .limit: error.isWriting ? .invalidValue : .damaged
      case .notPropertyList, .malformed, .unsupported, .checksum, .duplicateKey: .damaged
      case .typeMismatch, .missingKey, .missingValue, .invalidValue:
        error.isWriting ? .invalidValue : isInValue ? .typeMismatch : .damaged
      }
    let place = path.isEmpty ? "" : "at '\(path.pathDescription)': "
    // The mismatch of a leaf names the leaf's type; a missing key or a rejected value names none.
    let reader = code == .typeMismatch && error.kind != .typeMismatch ? Self.reader(type) : ""
    let isForeign = code == .damaged && !isInValue && error.offset == nil
    self.init(
      code, operation, subject,
      because: (isForeign ? "the content does not have the form of a \(noun.rawValue): " : "")
        + place + error.reason + reader)
  }

  private static func reader(_ type: Any.Type?) -> String {
    type.map { " (reading '\($0)')" } ?? ""
  }

  /// Runs a body that reads, and converts its errors.
  static func reading<Result>(
    _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String,
    of noun: FormNoun = .channel, as type: Any.Type? = nil, _ body: () throws -> Result
  ) throws(WormholeError) -> Result {
    do {
      return try body()
    } catch {
      throw WormholeError(
        error, operation(), subject(), of: noun, as: type, otherwise: .typeMismatch)
    }
  }

  /// Runs a body that writes, and converts its errors.
  static func writing<Result>(
    _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String,
    _ body: () throws -> Result
  ) throws(WormholeError) -> Result {
    do {
      return try body()
    } catch {
      throw WormholeError(error, operation(), subject(), otherwise: .invalidValue)
    }
  }
}

extension WormholeError {
  /// Whether no later read of a message's file can succeed.
  var meansUnreadable: Bool { [.refused, .tooLarge, .damaged].contains(code) }
}
