import Syscalls
import TestSupport

/// README.md, as far as tests can hold it to its word.
struct Readme {
  let text: String

  init() throws {
    let path = Programs.source + "/README.md"
    text = String(
      decoding: try Descriptor.open(path: path, [.readOnly]).contents(), as: UTF8.self)
  }

  /// A fenced block, with the mark in the comment on the line before it.
  struct Block {
    let mark: String
    let language: String
    let lines: [String]
  }

  /// The blocks that are marked, as in `<!-- transcript -->`.
  var blocks: [Block] {
    var blocks: [Block] = []
    var mark: String?
    var open: (mark: String, language: String, lines: [String])?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      if let block = open {
        if line == "```" {
          blocks.append(Block(mark: block.mark, language: block.language, lines: block.lines))
          open = nil
        } else {
          open?.lines.append(line)
        }
      } else if line.hasPrefix("```") {
        open = (mark ?? "", String(line.dropFirst(3)), [])
      }
      mark =
        line.hasPrefix("<!-- ") && line.hasSuffix(" -->")
        ? String(line.dropFirst(5).dropLast(4)) : nil
    }
    return blocks
  }

  /// All commands of all transcripts, with what they are said to write.
  var session: Session {
    Session(blocks.filter { $0.mark == "transcript" }.flatMap(\.lines))
  }

  /// The first two columns of the table of commands.
  var commands: [String] {
    let lines = text.split(separator: "\n").map(String.init)
    return lines.filter { $0.hasPrefix("| `wormhole ") }
  }

  /// The rooms named in the map, each with its folders.
  var rooms: [String: Set<String>] {
    var rooms: [String: Set<String>] = [:]
    var room = ""
    for line in blocks.first(where: { $0.mark == "rooms" })?.lines ?? [] {
      guard let name = line.split(separator: " ").first.map(String.init) else { continue }
      if line.hasPrefix(" ") {
        rooms[room, default: []].insert(name)
      } else {
        room = name
        rooms[room] = []
      }
    }
    return rooms
  }
}
