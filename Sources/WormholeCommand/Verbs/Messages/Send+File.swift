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
    let progress = Progress(output)
    let show = { (part: FileProgress) -> ProgressDecision in
      progress.show(part.bar)
      return .continue
    }
    return try send(to: name) { peer in
      defer { progress.clear() }
      guard let metadata else {
        return try peer.send(file: path, mode: mode, sending, progress: show)
      }
      return try peer.send(file: path, metadata: metadata, mode: mode, sending, progress: show)
    }
  }

  /// Returns the values of the options `--meta K=V`; nil if there are none.
  private func givenMetadata() throws(Failure) -> PropertyListValue? {
    let fields = try fields(.meta)
    return fields.isEmpty ? nil : .dictionary(fields.mapValues { .string($0) })
  }
}

extension FileProgress {
  /// The progress of a transfer, as shown on a terminal.
  fileprivate var bar: String {
    let width = 40
    let full = Int(fraction * Double(width))
    let bar = String(repeating: "#", count: full) + String(repeating: ".", count: width - full)
    return "[\(bar)] \(Int(fraction * 100)) % of \(total >> 20) MB"
  }
}

extension Option {
  static let file = Option("file", .file("FILE"), "file to send")
  static let meta = Option(
    "meta", .any("K=V"), "metadata of the file; may be repeated", isRepeatable: true)
  static let move = Option("move", nil, "remove the file, by moving it where possible")
}
