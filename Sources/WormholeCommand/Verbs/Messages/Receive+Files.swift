import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// `receive --files`.
extension Invocation {
  /// Moves a file into a directory, writes its path, and acknowledges the message.
  func take(
    _ file: ReceivedFile, of message: Message, into directory: String, _ writer: LineWriter
  ) throws -> Int32? {
    let value: PropertyListValue?
    let path: String?
    do throws(WormholeError) {
      // Read before the move: after an error the file is still with the message.
      value = try file.metadata(as: PropertyListValue.self)
      // If the file is missing, an earlier attempt has moved it and could not acknowledge the
      // message.
      path = try file.exists ? take(file, into: directory) : nil
    } catch {
      guard error.isOfSystem else { return refuse(message, error.reason) }
      // Not counted as an attempt: on a full disk, every message would become a dead letter.
      try message.unclaim()
      throw error
    }
    if let path {
      let fields: [String: PropertyListValue?] = [
        "file": .string(file.name), "path": .string(path), "size": .integer(Int64(file.size)),
      ]
      var line = WrittenLine(value, of: message, to: receiver, fields)
      line.plain = { try path.inOneLine() }
      // In a format, the value is the path, as on a line without a format.
      line.value = .string(path)
      try writer.write(line)
    } else {
      output.tell("the file '\(file.name)' was moved by an earlier attempt".inOneLineOrLess())
    }
    try message.acknowledge()
    return 0
  }

  private func take(
    _ file: ReceivedFile, into directory: String
  ) throws(WormholeError) -> String {
    var number = 0
    while true {
      let path = "\(directory)/\(Self.name(file.name, number))"
      do throws(WormholeError) {
        try file.move(to: path)
        return path
      } catch {
        number += 1
        guard error.code == .conflict, number < 10_000 else { throw error }
      }
    }
  }
}

extension Invocation {
  /// Returns a name with a number, shortened to the length that a file's name may have.
  fileprivate static func name(_ name: String, _ number: Int) -> String {
    guard number > 0 else { return name }
    let suffix = ".\(number)"
    var name = name
    while name.utf8.count + suffix.utf8.count > 255 { name.unicodeScalars.removeLast() }
    return name + suffix
  }
}

extension WormholeError {
  /// Whether the next file would meet the same error, which has no cause in this file itself.
  fileprivate var isOfSystem: Bool {
    errno != nil && ![.invalidName, .tooLarge, .conflict].contains(code)
  }
}

extension String {
  /// For output about names that any sender may have given.
  fileprivate func inOneLineOrLess() -> String { (try? inOneLine()) ?? "a file" }
}

extension Option {
  static let files = Option("files", .directory("DIR"), "directory to move files into")
}
