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

  /// A command of a transcript and what it is said to write.
  struct Exchange: Sendable {
    let command: [String]
    var output: String
  }

  /// All commands of all transcripts.
  var exchanges: [Exchange] {
    var exchanges: [Exchange] = []
    for block in blocks where block.mark == "transcript" {
      for line in block.lines {
        if line.hasPrefix("$ ") {
          let words = line.dropFirst(2).split(separator: " ").map(String.init)
          exchanges.append(Exchange(command: words, output: ""))
        } else if !exchanges.isEmpty {
          exchanges[exchanges.count - 1].output += line + "\n"
        }
      }
    }
    return exchanges
  }

  /// The rooms named in the map.
  var rooms: Set<String> {
    let block = blocks.first { $0.mark == "rooms" }
    let names = (block?.lines ?? []).compactMap { $0.split(separator: " ").first }
    return Set(names.map(String.init))
  }
}
