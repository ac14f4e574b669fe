import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// `send --file`.
extension Invocation {
  func sendFile(to name: String, _ options: SendOptions) throws -> Int32 {
    let path = value(.file) ?? ""
    if let value = operands.first {
      throw Failure.usage("cannot send: --file replaces the value '\(value)'")
    }
    // Each message of a queue has a value.
    let metadata = try givenMetadata() ?? (has(.toQueue) ? .dictionary([:]) : nil)
    var options = options
    options.kind = options.kind ?? "file"
    let sending = options
    let mode: TransferMode = has(.move) ? .moving : .copying
    let bar = ProgressBar(output)
    return try send(to: name) { peer in
      defer { bar.clear() }
      guard let metadata else {
        return try peer.send(file: path, mode: mode, sending) { bar.show($0) }
      }
      return try peer.send(file: path, metadata: metadata, mode: mode, sending) { bar.show($0) }
    }
  }

  /// Returns the values of the options `--meta K=V`; nil if there are none.
  private func givenMetadata() throws(Failure) -> PropertyListValue? {
    let fields = try fields(.meta)
    return fields.isEmpty ? nil : .dictionary(fields.mapValues { .string($0) })
  }
}

/// The progress of a file transfer, as shown on a terminal.
private final class ProgressBar {
  private static let width = 40
  private let isShown: Bool
  private var shown = Instant(nanoseconds: 0)
  private var isClear = true

  init(_ output: Output) {
    isShown = !output.isQuiet && !output.isJSON && StandardStream.error.isTerminal
  }

  func show(_ progress: FileProgress) -> ProgressDecision {
    guard isShown, Instant.now - shown > .milliseconds(100) else { return .continue }
    shown = .now
    isClear = false
    let full = Int(progress.fraction * Double(Self.width))
    let bar = String(repeating: "#", count: full) + String(repeating: ".", count: Self.width - full)
    let percent = Int(progress.fraction * 100)
    try? StandardStream.error.write("\r[\(bar)] \(percent) % of \(progress.total >> 20) MB")
    return .continue
  }

  func clear() {
    if !isClear { try? StandardStream.error.write("\r\u{1B}[K") }
    isClear = true
  }
}

extension Option {
  static let file = Option("file", .file("FILE"), "file to send")
  static let meta = Option(
    "meta", .any("K=V"), "metadata of the file; may be repeated", isRepeatable: true)
  static let move = Option("move", nil, "remove the file, by moving it where possible")
}
