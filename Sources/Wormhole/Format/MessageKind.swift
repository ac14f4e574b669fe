internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The kind of a message, a request or a context, given by the sender: by default the name of the
/// value's type.
enum MessageKind {
  private static let names = Monitor<[ObjectIdentifier: String]>([:])

  /// Computed once for each type, as the runtime builds the name again each time.
  static func name<Value>(of type: Value.Type) -> String {
    names.withLock { names in
      if let name = names[ObjectIdentifier(type)] { return name }
      let name = String(describing: type)
      names[ObjectIdentifier(type)] = name
      return name
    }
  }

  /// The largest size of a kind in bytes.
  ///
  /// Commands get the kind in their environment, which permits no zero byte and few long values.
  /// Earlier programs have sent longer kinds, which are still received.
  static let longest = 255

  /// Throws if the kind is not permitted in sending.
  static func check(
    _ kind: String, _ operation: @autoclosure () -> String, _ peer: @autoclosure () -> String
  ) throws(WormholeError) {
    let size = kind.utf8.count
    let problem =
      size > longest
      ? "the kind has \(size) bytes, and the limit is \(longest)"
      : kind.utf8.contains(0) ? "the kind contains a zero byte" : nil
    guard let problem, !Mutants.has(.anyKind) else { return }
    throw WormholeError(
      .invalidName, operation(), peer(), because: problem,
      hint: "give a shorter kind without zero bytes")
  }

  /// Returns the given kind, or the name of the type; throws if it is not permitted in sending.
  static func checked<Value>(
    _ kind: String?, of type: Value.Type, _ operation: @autoclosure () -> String,
    _ peer: @autoclosure () -> String
  ) throws(WormholeError) -> String {
    let kind = kind ?? name(of: type)
    try check(kind, operation(), peer())
    return kind
  }
}
