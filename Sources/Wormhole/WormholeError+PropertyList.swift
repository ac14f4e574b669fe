internal import PropertyLists
internal import SharedContainer

/// What has a form of its own, as errors call it.
enum FormNoun: String { case channel, message, context, request }

/// What an error of reading or writing a property list means to who put or asked for the value.
///
/// The one place where a `PropertyListError` becomes a code.
extension WormholeError {
  /// Gives an error its meaning; one that has it already passes.
  ///
  /// - Parameters:
  ///   - noun: whose form what is read has.
  ///   - code: that of an error which the value's own code has thrown.
  init(
    _ error: any Error, _ operation: String, _ subject: String, of noun: FormNoun = .channel,
    otherwise code: Code
  ) {
    switch error {
    case let error as WormholeError: self = error
    case let error as PropertyListError: self.init(error, operation, subject, noun)
    default: self.init(code, operation, subject, because: "\(error)")
    }
  }

  private init(
    _ error: PropertyListError, _ operation: String, _ subject: String, _ noun: FormNoun
  ) {
    var path = error.codingPath
    let isInBatch = path.first?.stringValue == MessageFile.Key.values.rawValue
    let isInValue = isInBatch || path.first?.stringValue == Envelope.Key.value.rawValue
    // Of a batch, which of its values it is comes next, and the caller knows that.
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
    let isForeign = code == .damaged && !isInValue && error.offset == nil
    self.init(
      code, operation, subject,
      because: (isForeign ? "it is not of a \(noun.rawValue)'s form: " : "") + place + error.reason)
  }

  /// Runs what reads, and gives its errors their meaning.
  static func reading<Result>(
    _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String,
    of noun: FormNoun = .channel, _ body: () throws -> Result
  ) throws(WormholeError) -> Result {
    do {
      return try body()
    } catch {
      throw WormholeError(error, operation(), subject(), of: noun, otherwise: .typeMismatch)
    }
  }

  /// Runs what writes, and gives its errors their meaning.
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
